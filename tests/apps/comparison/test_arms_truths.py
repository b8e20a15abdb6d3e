"""Arms files of many kinds with what a careful reader says of each: the means of its arms, or that
it must ask.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from jaxbandits.core.checks import InputError
from tests.apps.comparison.reading import read

Arms = dict[str, tuple[float, float]]  # mean reward, mean cost
ASKED = "asked"
FILES: dict[str, tuple[str, Arms | str]] = {
"ab_discount_cost": ("""\
Experiment,Arm,Exposed users,Purchases,Discount cost ($)
E1,Control,3669,132,1271.08
E1,Variant A,3748,243,4244.93
E1,Variant B,4201,277,9326.58
""", ASKED),
"ab_optimizely": ("""\
Variation,Visitors,Conversions,Conversion rate,Improvement,Statistical significance,Cost
Control,3669,132,3.60%,--,--,1271.08
Variant A,3748,243,6.48%,+3.1%,87%,4244.93
Variant B,4201,277,6.59%,+6.2%,87%,9326.58
""", {"Control": (0.03597711, 0.3464377), "Variant A": (0.06483458, 1.132585), "Variant B": (0.06593668, 2.220086)}),
"ab_rate_only": ("""\
variant,conversion rate,cost
Control,3.60%,1271.08
Variant A,6.48%,4244.93
Variant B,6.59%,9326.58
""", ASKED),
"ads_two_click_columns": ("""\
Ad,Clicks (mobile),Clicks (desktop),Cost,Conversions
P1,1638,3277,8698.34,499
P2,2183,4367,2044.57,555
P3,1931,3863,4085.39,289
""", ASKED),
"apple_search_taps": ("""\
Campaign Name,Spend,Impressions,Taps,Installs,Avg CPT,TTR
Discovery,7200.26,261924,5345,420,1.35,0.0204
Brand exact,5212.00,126627,3088,231,1.69,0.0244
Category,3334.41,44441,2222,37,1.50,0.0500
""", {"Discovery": (0.07857811, 1.347102), "Brand exact": (0.0748057, 1.687824), "Category": (0.01665167, 1.500635)}),
"cells_k_suffix": ("""\
Campaign,Clicks,Cost,Conversions
a,1.2k,$350.00,40
b,900,$280.50,31
c,2.5K,$1.1k,75
""", ASKED),
"cells_pence": ("""\
Campaign,Clicks,Cost,Conversions
a,120,£35.00,4
b,90,85p,3
""", ASKED),
"cells_percent_reward": ("""\
name,clicks,spent,conversions
a,100,10.00,5%
b,200,15.00,7%
c,250,18.00,4%
""", ASKED),
"french_meta": ("""\
Nom de la campagne;Impressions;Clics;Montant dépensé (EUR);Résultats;Coût par résultat
Frühjahr;216 762;5 704;13 193,13;113;116,75
Händler;199 672;4 870;5 870,13;67;87,61
Größe XL;105 045;4 040;6 698,81;475;14,10
""", {"Frühjahr": (0.01981066, 2.312961), "Händler": (0.0137577, 1.205366), "Größe XL": (0.1175743, 1.658121)}),
"german_google": ("""\
Kampagnenbericht
1. März 2024 – 31. März 2024
Kampagne;Impressionen;Klicks;CTR;Durchschn. CPC;Kosten;Conversions
Frühjahr;216.762;5.704;2,63 %;2,31;13.193,13;113,00
Händler;199.672;4.870;2,44 %;1,21;5.870,13;67,00
Größe XL;105.045;4.040;3,85 %;1,66;6.698,81;475,00
""", {"Frühjahr": (0.01981066, 2.312961), "Händler": (0.0137577, 1.205366), "Größe XL": (0.1175743, 1.658121)}),
"google_ads_campaigns": ("""\
Campaign report
"March 1, 2024 - March 31, 2024"
Campaign status,Campaign,Currency code,Impr.,Clicks,CTR,Avg. CPC,Cost,Conversions,Cost / conv.,Conv. rate
Enabled,Brand - Search,USD,"66,213","2,207",3.33%,0.60,"1,329.73",160.00,8.31,7.25%
Enabled,Generic - Search,USD,"18,869",898,4.76%,1.99,"1,788.92",37.00,48.35,4.12%
Enabled,PMax | Shoes,USD,"184,177","8,371",4.55%,1.45,"12,172.55",292.00,41.69,3.49%
Enabled,Video: launch,USD,"53,346","1,778",3.33%,0.47,842.49,52.00,16.20,2.92%
Total: Campaigns, --,USD,"322,605","13,254",4.11%,1.22,"16,133.69",541.00,29.82,4.08%
""", {"Brand - Search": (0.0724966, 0.6025057), "Generic - Search": (0.04120267, 1.992116),
  "PMax | Shoes": (0.03488233, 1.454133), "Video: launch": (0.02924634, 0.4738414)}),
"groups_campaign_above_ads_plain": ("""\
name,clicks,spent,conversions
Winter,9891,9652.17,797
Winter ad a,6553,1852.81,412
Winter ad b,3338,7799.36,385
Sommer,11733,7000.91,1061
Sommer ad a,3415,1009.65,210
Sommer ad b,1914,4303.40,155
Sommer ad c,6404,1687.86,696
""", ASKED),
"groups_campaign_and_ad": ("""\
Campaign,Ad,Clicks,Cost,Conversions
Shoes,Shoes ad 1,2601,4797.39,204
Shoes,Shoes ad 2,6113,7395.74,729
Shoes,Shoes ad 3,6665,15229.77,550
Hats,Hats ad 1,2421,2103.20,67
Hats,Hats ad 2,8418,15946.88,160
Hats,Hats ad 3,5124,4361.16,420
""", {"Shoes ad 1": (0.07843137, 1.844441), "Shoes ad 2": (0.119254, 1.209838), "Shoes ad 3": (0.08252063, 2.285037),
  "Hats ad 1": (0.02767451, 0.8687319), "Hats ad 2": (0.01900689, 1.894379), "Hats ad 3": (0.08196721, 0.8511241)}),
"layout_pandas_index": ("""\
,name,clicks,spent,conversions
0,Kite,476,682.71,12
1,Surf,751,1709.97,35
2,Dive,728,662.73,71
3,Sail,787,949.64,35
""", {"Kite": (0.02521008, 1.434265), "Surf": (0.04660453, 2.276924), "Dive": (0.09752747, 0.9103434),
  "Sail": (0.04447268, 1.206658)}),
"llm_accuracy_pct": ("""\
Model,Accuracy (%),Cost per request (USD)
gpt-4o,73.0,0.00328
claude-3.5-sonnet,88.6,0.00532
llama-3.1-70b,81.2,0.01760
mistral-large,60.4,0.01054
""", {"gpt-4o": (0.73, 0.00328), "claude-3.5-sonnet": (0.886, 0.00532), "llama-3.1-70b": (0.812, 0.0176),
  "mistral-large": (0.604, 0.01054)}),
"llm_accuracy_total_cost_no_n": ("""\
model,accuracy,total_cost
gpt-4o,0.73,1.64
claude-3.5-sonnet,0.886,2.66
llama-3.1-70b,0.812,8.8
mistral-large,0.604,5.27
""", ASKED),
"llm_cents": ("""\
model,requests,solved,cost (cents)
gpt-4o,500,365,164
claude-3.5-sonnet,500,443,266
llama-3.1-70b,500,406,880
mistral-large,500,302,527
""", {"gpt-4o": (0.73, 0.00328), "claude-3.5-sonnet": (0.886, 0.00532), "llama-3.1-70b": (0.812, 0.0176),
  "mistral-large": (0.604, 0.01054)}),
"log_one_row_each": ("""\
name,reward,cost
m1,0,0.5762
m2,1,0.2063
m3,0,0.1789
m4,1,0.3187
""", ASKED),
"means_semicolon_commas": ("""\
name;mean_reward;mean_cost
Anna;0,1364;0,6738
Bernd;0,2739;0,2391
Clara;0,4076;0,7918
""", {"Anna": (0.1364, 0.6738), "Bernd": (0.2739, 0.2391), "Clara": (0.4076, 0.7918)}),
"mixed_decimals": ("""\
name;clicks;spent;conversions
a;100;12,34;4
b;150;23.45;6
""", ASKED),
"negative_cost": ("""\
name,clicks,spent,conversions
a,100,12.34,4
b,150,-23.45,6
c,90,9.00,2
""", ASKED),
"pivot_arms_are_columns": ("""\
metric,Kite,Surf,Dive,Sail
clicks,476,751,728,787
spent,682.71,1709.97,662.73,949.64
conversions,12,35,71,35
""", ASKED),
"pivot_name_once": ("""\
Campaign,Date,Clicks,Cost,Conversions
Kite,2024-03-01,200,473.31,23
,2024-03-02,173,225.27,2
,2024-03-03,111,245.45,12
Surf,2024-03-01,86,150.14,1
,2024-03-02,274,167.91,22
,2024-03-03,163,172.26,9
""", ASKED),
"plain_total_is_brand": ("""\
name,clicks,spent,conversions
Total,2457,3713.81,138
Shell,4660,7524.70,270
BP,7825,16529.70,296
""", ASKED),
"price_avg_cost": ("""\
Keyword,Clicks,Conversions,Avg. cost
k1,800,23,0.35
k2,1200,43,0.52
k3,1600,63,0.69
k4,2000,83,0.86
""", ASKED),
"price_avg_cpc": ("""\
Keyword,Clicks,Conversions,Avg. CPC
k1,800,23,0.35
k2,1200,43,0.52
k3,1600,63,0.69
k4,2000,83,0.86
""", ASKED),
"price_cout_par_clic": ("""\
Campagne;Clics;Conversions;Coût par clic
k1;800;23;0,35
k2;1200;43;0,52
k3;1600;63;0,69
k4;2000;83;0,86
""", ASKED),
"rate_ctr_log_like": ("""\
Ad,CTR,CPC
k1,2.67%,0.35
k2,3.00%,0.52
k3,3.20%,0.69
k4,3.33%,0.86
""", ASKED),
"three_arms_sum": ("""\
name,clicks,spent,conversions
a,100,30.00,4
b,150,45.50,6
c,250,75.50,10
""", ASKED),
"total_in_index_column": ("""\
Row,Campaign,Clicks,Cost,Conversions
1,North,2457,3713.81,138
2,South,4660,7524.70,270
3,East,7825,16529.70,296
4,West,6909,10435.92,274
5,Centre,2408,5378.57,152
Total,,24259,43582.70,1130
""", {"North": (0.05616606, 1.511522), "South": (0.05793991, 1.614742), "East": (0.03782748, 2.112422),
  "West": (0.03965842, 1.510482), "Centre": (0.06312292, 2.233625)}),
"llm_attempts_in_a_log": ("""\
model,requests,cost_usd,resolved
a,3,1.5,1
b,2,9.5,0
a,4,1.5,0
""", ASKED),
"ads_two_costs": ("""\
Campaign,Clicks,Media cost,Agency fee,Conversions
Red,6442,8886.72,888.67,521
Green,8393,14364.39,2872.88,850
""", ASKED),
"clicks_unknown_beside_impressions": ("""\
Ad set,Displays,Hits,Cost,Revenue
Brand,315119,5341,5440.14,15524.50
Video,210720,4390,7658.12,8723.00
""", ASKED),
"daily_without_clicks_at_midnight": ("""\
timestamp,variant,cost_usd,signups
2024-03-01T00:00:00Z,promo,62.54,4
2024-03-01T00:00:00Z,plain,35.43,7
2024-03-02T00:00:00Z,promo,12.20,1
2024-03-02T00:00:00Z,plain,45.10,3
""", ASKED),
"groups_campaign_below_ads_plain": ("""\
name,clicks,spent,conversions
Winter ad a,6553,1852.81,412
Winter ad b,3338,7799.36,385
Winter,9891,9652.17,797
Sommer ad a,3415,1009.65,210
Sommer ad b,1914,4303.40,155
Sommer,5329,5313.05,365
""", ASKED),
"log_subtotals": ("""\
arm,reward,cost
a,1,0.72
a,1,0.85
a,0,0.12
a total,2,1.69
b,0,0.40
b,1,0.31
b,1,0.66
b total,2,1.37
""", {"a": (0.6666667, 0.5633333), "b": (0.6666667, 0.4566667)}),
"bing_keywords": ("""\
"Keyword","Ad group","Impressions","Clicks","CTR","Avg. CPC","Spend","Conversions"
"buy shoes","Shoes","1,204","120","9.97%","0.42","50.40","6"
"red shoes","Shoes","3,410","150","4.40%","0.35","52.50","4"
""", {"buy shoes": (0.05, 0.42), "red shoes": (0.02666667, 0.35)}),
"total_of_more_than_the_rows": ("""\
Row,Status,Campaign,Clicks,Cost,Conversions
1,on,North,10,5,1
2,on,South,20,9,2
,Total,All campaigns,99,70,8
""", ASKED),
"tiktok_campaigns": ("""\
Campaign name,Cost,CPC (destination),CPM,Impressions,Clicks (destination),CTR (destination),Conversions
Spark A,120.50,0.48,5.02,24000,250,1.05%,7
Spark B,80.20,0.62,4.40,18200,401,0.71%,-
""", {"Spark A": (0.028, 0.482), "Spark B": (0.0, 0.2)}),
"rates_beside_clicks": ("""\
Campaign,Clicks,Cost,Avg. CPC,Conv. rate
North,2207,1329.73,0.60,7.25%
South,898,1788.92,1.99,4.12%
--,3105,3118.65,1.00,6.34%
""", ASKED),
"rows_with_a_price": ("""\
Leads,CPC,Cost,Campaign
1,1,2,a
0,1,1,b
0,1,2,a
""", ASKED),
"means_of_two_tests": ("""\
name,mean_reward,mean_cost,Experiment
a,0.5,0.25,E2
b,0.125,1,E1
""", ASKED),
"conversions_in_thousands": ("""\
name,clicks,spent,conversions (k)
a,100,15,2
b,400,10,1
""", ASKED),
"total_of_averages": ("""\
Keyword,Clicks,Conversions,CPC
k1,800,23,0.35
k2,1200,43,0.52
k3,1600,63,0.69
Everything,3600,129,0.56
""", ASKED),
"total_over_subtotals_without_name": ("""\
Campaign,Ad,Clicks,Cost,Conversions
Winter,,10931,14833.84,428
Winter,Winter a,8199,11359.37,118
Winter,Winter b,2732,3474.47,310
Sommer,,6942,2553.58,419
Sommer,Sommer a,4110,1059.55,110
Sommer,Sommer b,2832,1494.03,309
,Account,17873,17387.42,847
""", ASKED),
"unit_gbp_pence": ("""\
Campaign,Clicks,Spend GBp,Conversions
U1,2447,437037,135
U2,2058,48675,123
""", ASKED),
"cells_cents": ("""\
name,clicks,spent,conversions
a,100,584.25¢,4
b,150,150.51,6
""", ASKED),
"log_two_rewards": ("""\
model,rating,correct,cost
a,4,1,0.31
a,2,0,0.29
b,5,1,0.12
b,1,1,0.11
""", ASKED),
"price_in_percent": ("""\
Keyword,Clicks,Conversions,CPC
k1,800,23,0.35
k2,1200,43,52%
""", ASKED),
"previous_conversions": ("""\
Campaign,Clicks,Cost,Outcomes,Conversions (previous)
Red,6442,8886.72,521,480
Green,8393,14364.39,850,901
""", ASKED),
"total_of_one_name": ("""\
Campaign,Clicks,Cost,Conversions
Winter,10931,14833.84,428
Winter,8199,11359.37,118
Winter,2732,3474.47,310
Sommer,6942,2553.58,419
Sommer,4110,1059.55,110
Sommer,2832,1494.03,309
""", ASKED),
"total_of_last_year": ("""\
name,clicks,spent,conversions
a,1000,300.50,40
b,1500,455.25,60
Total last year,9000,2700.00,350
""", ASKED),
"windows_by_end": ("""\
Campaign,Reporting starts,Reporting ends,Clicks,Cost,Conversions
Red,2024-03-25,2024-03-31,4640,3033.74,145
Red,2024-03-01,2024-03-31,18560,12134.96,580
Blue,2024-03-25,2024-03-31,2385,3089.40,170
Blue,2024-03-01,2024-03-31,9540,12357.60,680
""", ASKED),
"windows_dated": ("""\
Campaign,Date,Window,Clicks,Cost,Conversions
Red,2024-03-25,7d,4640,3033.74,145
Red,2024-03-01,30d,18560,12134.96,580
Blue,2024-03-25,7d,2385,3089.40,170
Blue,2024-03-01,30d,9540,12357.60,680
""", ASKED),
"log_score_and_revenue": ("""\
date,ad,quality score,revenue,cost
2024-03-01,a,7,10.5,0.31
2024-03-01,a,3,0,0.29
2024-03-02,b,9,12.0,0.12
2024-03-02,b,4,0,0.11
""", ASKED),
"cost_in_percent": ("""\
Campaign,Clicks,Cost,Conversions
Red,6442,40%,521
Green,8393,60%,850
""", ASKED),
"two_arms_equal": ("""\
name,clicks,spent,conversions
one,6127,12488.11,82
two,6127,12488.11,82
""", {"one": (0.01338339, 2.03821), "two": (0.01338339, 2.03821)}),
"unit_cent_sign": ("""\
Campaign,Clicks,Cost (¢),Conversions
U1,4985,334512,317
U2,5999,421313,281
U3,7242,1040303,140
""", {"U1": (0.06359077, 0.6710371), "U2": (0.04684114, 0.7023054), "U3": (0.01933168, 1.436486)}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_it_says_or_asks(tmp_path: Path, name: str) -> None:
    text, truth = FILES[name]
    if isinstance(truth, str):
        with pytest.raises(InputError):
            read(tmp_path, text)
        return
    (instance,) = read(tmp_path, text).instances
    means = zip(instance.mean_reward.tolist(), instance.mean_cost.tolist(), strict=True)
    of_arm = dict(zip(instance.arms, means, strict=True))
    assert of_arm.keys() == truth.keys()
    assert all(of_arm[arm] == pytest.approx(of, rel=1e-5) for arm, of in truth.items())


def test_no_file_is_too_easy() -> None:
    questions = sum(truth == ASKED for _, truth in FILES.values())
    assert len(FILES) >= 30 and len(FILES) // 4 < questions < 3 * len(FILES) // 4
