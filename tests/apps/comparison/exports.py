# ruff: noqa: E501 (a file is a line)
"""Everyday exports and what is true of them: pulls, rewards and money of each arm.

A person says which column is what, and no more; the truths were written from the tables.
"""

from __future__ import annotations

from typing import Any

GOOGLE = {"name": "Campaign", "pulls": "Clicks", "reward": "Conversions", "cost": "Cost"}
GERMAN = {"name": "Kampagne", "pulls": "Klicks", "reward": "Conversions", "cost": "Kosten"}
AD = GOOGLE | {"name": "Ad"}
TWO = {"A": (100, 5, 50.0), "B": (200, 4, 80.5)}
BIG = {"A": (1300, 12, 650.0), "B": (10, 1, 2.5)}
DAYS = {"A": (30, 3, 12.0), "B": (7, 0, 4.0)}
LOG = {"a": (2, 1, 3.0), "b": (2, 0, 5.0)}

# name: (the file, how it is read, the truth)
EXPORTS: dict[str, tuple[str | bytes, dict[str, Any], dict[str, tuple[float, float, float]]]] = {
    "plain counts": ("name,clicks,spent,conversions\nA,100,50,5\nB,200,80.5,4\n", {}, TWO),
    "other plain titles, another order": ("Cost,ARM,Pulls,Reward\n50,A,100,5\n80.5,B,200,4\n", {}, TWO),
    "google": ("Campaign,Clicks,Impr.,Cost,Conversions\nA,100,900,$50.00,5\nB,200,800,$80.50,4\n", {"columns": GOOGLE}, TWO),
    "two lines above, a total below": ('Campaign report\n"1 May 2024 - 31 May 2024"\nCampaign,Clicks,Cost,Conversions\nA,100,50,5\nB,200,80.5,4\nTotal: all,300,130.5,9\n', {"columns": GOOGLE, "drop": ["Total: all"]}, TWO),
    "two equal arms are no sums": ("name,clicks,spent,conversions\nA,100,50,5\nB,200,80.5,4\nC,200,80.5,4\n", {}, TWO | {"C": TWO["B"]}),
    "thousands": ("name;Impr. (000);Cost (K EUR);Køb\nA;,1;,05;5\nB;0,2;0,0805;4\n", {"columns": {"pulls": "Impr. (000)", "cost": "Cost (K EUR)", "reward": "Køb"}}, TWO),
    "german": ("Kampagne;Klicks;Kosten;Conversions\nA;1.300;650,00 €;12\nB;10;2,50 €;1\n", {"columns": GERMAN}, BIG),
    "german, a byte order mark": ("\ufeffKampagne;Klicks;Kosten;Conversions\r\nA;1300;650,00;12\r\nB;10;2,50;1\r\n", {"columns": GERMAN}, BIG),
    "latin-1": ("Größe;Klicks;Kosten;Käufe\nA;1300;650,0;12\nB;10;2,5;1\n".encode("cp1252"), {"columns": {"name": "Größe", "pulls": "Klicks", "reward": "Käufe", "cost": "Kosten"}, "encoding": "cp1252"}, BIG),
    "swiss": ("Kampagne;Klicks;Kosten;Conversions\nA;1'300;CHF 650.00;12\nB;10;CHF 2.50;1\n", {"columns": GERMAN}, BIG),
    "french": ("Campagne;Clics;Coût;Achats\nA;1\u202f300;650,00 €;12\nB;10;2,50 €;1\n", {"columns": {"name": "Campagne", "pulls": "Clics", "reward": "Achats", "cost": "Coût"}}, BIG),
    "india": ('Campaign,Clicks,Cost,Conversions\nA,"1,300","₹1,50,650.50",12\nB,10,₹2.50,1\n', {"columns": GOOGLE}, {"A": (1300, 12, 150650.5), "B": (10, 1, 2.5)}),
    "brazil": ('Campanha,Cliques,Custo,Vendas\nA,1.300,"R$ 650,00",12\nB,10,"R$ 2,50",1\n', {"columns": {"name": "Campanha", "pulls": "Cliques", "reward": "Vendas", "cost": "Custo"}}, BIG),
    "micros": ("campaign,clicks,cost_micros,conversions\nA,100,50000000,5\nB,200,80500000,4\n", {"columns": {"name": "campaign", "cost": "cost_micros"}}, TWO),
    "cents": ("ad,clicks,cost (cents),sales\nA,100,5000,5\nB,200,8050,4\n", {"columns": {"name": "ad", "pulls": "clicks", "cost": "cost (cents)", "reward": "sales"}}, TWO),
    "lines in a cell": ('Ad,Text,Clicks,Cost,Conversions\nA,"Buy,\nnow ""today""",100,50,5\nB,No,200,80.5,4\n', {"columns": AD}, TWO),
    "blank lines, blanks": ("\n\nname , clicks, spent, conversions\n\n A , 100, 50, 5\n\nB,200,80.5,4\n,,,\n\n", {}, TWO),
    "an index column": (",Campaign,Clicks,Cost,Conversions\n0,A,100,50,5\n1,B,200,80.5,4\n", {"columns": GOOGLE}, TWO),
    "a title twice, unused": ("Campaign,CTR,Clicks,CTR,Cost,Conversions\nA,1%,100,2%,50,5\nB,2%,200,3%,80.5,4\n", {"columns": GOOGLE}, TWO),
    "days": ("Campaign,Day,Clicks,Cost,Conversions\nA,2024-05-01,10,4,1\nB,2024-05-01,7,4,0\nA,2024-05-02,20,8,2\n", {"columns": GOOGLE}, DAYS),
    "german days": ("Kampagne;Tag;Klicks;Kosten;Conversions\nA;01.05.2024;10;4,0;1\nB;01.05.2024;7;4,0;0\nA;02.05.2024;20;8,0;2\n", {"columns": GERMAN | {"time": "Tag"}}, DAYS),
    "months in words": ("Campaign,Month,Clicks,Cost,Conversions\nA,May 2024,10,4,1\nB,May 2024,7,4,0\nA,Jun 2024,20,8,2\n", {"columns": GOOGLE}, DAYS),
    "devices": ("Campaign,Device,Clicks,Cost,Conversions\nA,Phone,10,4,1\nA,Desktop,20,8,2\nB,Phone,7,4,0\n", {"columns": GOOGLE | {"over": "Device"}}, DAYS),
    "an ad in two campaigns": ("Campaign,Ad,Clicks,Cost,Conversions\nX,A,10,4,1\nY,A,20,8,2\nX,B,7,4,0\n", {"columns": AD | {"name": "Campaign+Ad"}}, {"X / A": (10, 1, 4.0), "Y / A": (20, 2, 8.0), "X / B": (7, 0, 4.0)}),
    "scientific": ("name,clicks,spent,conversions\nA,1e2,5.0E+01,5\nB,2e2,8.05e1,4\n", {}, TWO),
    "a visit costs one": ("variant,visitors,signups\nA,100,5\nB,200,4\n", {"columns": {"name": "variant", "pulls": "visitors", "reward": "signups", "cost": "1"}}, {"A": (100, 5, 100.0), "B": (200, 4, 200.0)}),
    "plain log": ("name,reward,cost\na,1,1\nb,0,3\na,0,2\nb,0,2\n", {}, LOG),
    "rewards above 1": ("name,reward,cost\na,70,1\nb,0,3\na,20.5,2\nb,10,2\n", {}, {"a": (2, 90.5, 3.0), "b": (2, 10, 5.0)}),
    "a request a row": ("prompt,a,a_cost,b,b_cost\nx,1,1,0,3\ny,0,2,0,2\n", {"wide": True}, LOG),
    "a request a row, words": ("id;score a;score b;cost a;cost b\n7;1;0;1,0;3,0\n8;0;0;2,0;2,0\n", {"wide": True}, LOG),
}  # fmt: skip

# More, written before the reader that they try
EXPORTS |= {
    "linkedin": ("Campaign Performance Report\nReport Start: May 1\n\nCampaign Name\tClicks\tTotal Spent\tLeads\nA\t1,300\t650.00\t12\nB\t10\t2.50\t1\n".encode("utf-16"), {"columns": {"name": "Campaign Name", "cost": "Total Spent", "reward": "Leads"}}, BIG),
    "a copyright below": ("Campaign,Clicks,Cost,Conversions\nA,100,50,5\nB,200,80.5,4\n\n©2024 Some Corporation. All rights reserved.\n", {"columns": GOOGLE}, TWO),
    "requests of a model": ("ts,model,score,usd\n2024-05-01T10:00:00+02:00,a,0.5,1e-4\n2024-05-01T10:00:01+02:00,b,0.25,3e-4\n2024-05-01T10:00:02+02:00,a,1,2e-4\n2024-05-01T10:00:03+02:00,b,0,2e-4\n", {"columns": {"name": "model", "reward": "score", "cost": "usd", "time": "ts"}}, {"a": (2, 1.5, 3e-4), "b": (2, 0.25, 5e-4)}),
    "numbers as names": ("ad_id,clicks,spent,conversions\n007,100,50,5\n012,200,80.5,4\n", {"columns": {"name": "ad_id"}}, {"007": (100, 5, 50.0), "012": (200, 4, 80.5)}),
    "a rate beside": ("Campaign,Clicks,CTR,Avg. CPC,Cost,Conversions,Conv. rate\nA,100,10%,$0.50,$50.00,5,5%\nB,200,8%,$0.40,$80.50,4,2%\n", {"columns": GOOGLE}, TWO),
}  # fmt: skip

# --- Files whose numbers would be others than they look, were nothing asked: a word of the message

HEAD = "name,clicks,spent,conversions\n"
TRAPS: dict[str, tuple[str | bytes, dict[str, Any], str]] = {
    "a total": (HEAD + "A,100,50,5\nB,200,80.5,4\nTotal,300,130.5,9\n", {}, "--drop Total"),
    "a sum that is not called so": (HEAD + "A,100,50,5\nB,200,80.5,4\nShop,300,130.5,9\n", {}, "sum of other rows; --drop Shop"),
    "a subtotal above": (HEAD + "S,300,130.5,9\nA,100,50,5\nB,200,80.5,4\nC,70,9,2\n", {}, "'S' is the sum"),
    "a subtotal below": (HEAD + "C,70,9,2\nA,100,50,5\nB,200,80.5,4\nS,300,130.5,9\nD,8,9,1\n", {}, "'S' is the sum"),
    "all arms each day": ("name,day,clicks,spent,conversions\nA,2024-05-01,10,4,1\nA,2024-05-02,9,8,2\nAll,2024-05-01,15,6,2\nAll,2024-05-02,16,9,4\nB,2024-05-01,5,2,1\nB,2024-05-02,7,1,2\n", {}, "'All' is the sum"),
    "a nameless row": (HEAD + "A,100,50,5\nB,200,80.5,4\n--,400,99,9\n", {}, "--drop ''"),
    "a total of a log": ("name,reward,cost\na,1,2\nb,1,3\na,1,4\nb,0,1\nx,3,10\n", {}, "'x' is the sum"),
    "two currencies": (HEAD + "A,100,$50,5\nB,200,80.5 €,4\n", {}, "line 3: '€' beside '$' are several currencies"),
    "a column of currencies": ("name,clicks,spent,currency,conversions\nA,100,50,USD,5\nB,200,80.5,EUR,4\n", {}, "--columns instance=currency"),
    "rewards in two currencies": ("instance,name,clicks,spent,reward\nU,a,9,5,$5\nU,b,9,5,$6\nD,a,9,5,€5\nD,b,9,5,€6\n", {}, "give a file of each"),
    "pulls of means": ("name,n,mean_reward,mean_cost\na,10,.5,1\nb,20,.4,1\n", {"columns": {"pulls": "n"}}, "'pulls=n' given; it must be left out"),
    "counts as means": ("name,sales,mean_cost\na,310,1\nb,246,1\n", {"columns": {"mean_reward": "sales"}}, "not counts"),
    "a price with a stroke": ("name,clicks,Cost / conv.,conversions\nA,100,10,5\nB,200,20,4\n", {"columns": {"cost": "Cost / conv."}}, "not a mean, rate"),
    "a subtotal without a number": (HEAD + "S,300,130.5,\nA,100,50,5\nB,200,80.5,4\nC,70,9,2\nD,8,9,\n", {}, "'S' is the sum"),
    "a total for a day": ("name,day,clicks,spent,conversions\nA,1,10,4,1\nA,2,20,8,2\nA,Total,30,12,3\nB,1,5,2,1\n", {}, "--drop Total"),
    "a total with a dash": (HEAD + "A,100,50,5\nB,200,80.5,4\n-Total,300,130.5,9\n", {}, "--drop=-Total"),
    "percent of a total": (HEAD + "A,100,50,5%\nB,200,80.5,4%\n", {}, "'5%' given"),
    "percent beside numbers": ("name,reward,cost\na,50%,1\nb,25%,3\na,0.75,2\nb,0,2\n", {}, "'50%' given"),
    "a rate as a total": ("name,clicks,CPC,conversions\nA,100,.5,5\nB,200,.4,4\n", {"columns": {"cost": "CPC"}}, "not a mean, rate"),
    "one sign, two readings": ("name;clicks;spent;conversions\nA;100;1.300;5\nB;200;2.500;4\n", {}, "--decimal"),
    "another sign than given": (HEAD + "A,100,50.25,5\nB,200,80,4\n", {"decimal": ","}, "or give --decimal"),
    "decimal commas between commas": (HEAD + "A,100,50,5\nB,200,80,5,4\n", {}, "number of cells"),
    "K": (HEAD + "A,1.2K,50,5\nB,200,80,4\n", {}, "'1.2K' given"),
    "infinite": ("name,mean_reward,mean_cost\na,.5,1e999\nb,.5,1\n", {}, "'1e999' given"),
    "more conversions than clicks": (HEAD + "A,100,50,500\nB,200,80,4\n", {}, "5.0 conversions a pull"),
    "case": (HEAD + "Brand,100,50,5\nbrand,200,80,4\n", {}, "look the same"),
    "accents": (HEAD + "Café,100,50,5\nCafe\u0301,200,80,4\n", {}, "look the same"),
    "zero width": (HEAD + "Brand,100,50,5\nBra\u200bnd,200,80,4\n", {}, "look the same"),
    "an instance without a name": ("instance,name,mean_reward,mean_cost\nx,a,.5,1\nx,b,.6,1\n-,c,.5,1\n", {}, "line 4: no instance"),
    "a sign of two": (HEAD, {"decimal": ";"}, "decimal: ';' given"),
    "a key that is none": (HEAD, {"columns": {"nmae": "a"}}, "columns: 'nmae'"),
    "rounded ids": (HEAD + "2.38E+16,100,50,5\n2.39E+16,200,80,4\n", {}, "rounded"),
    "a row twice": (HEAD + "A,100,50,5\nB,200,80,4\nA,100,50,5\n", {}, "identical to an earlier row"),
    "a name twice in means": ("name,mean_reward,mean_cost\na,.5,1\na,.6,1\n", {}, "names must differ"),
    "devices": ("name,device,clicks,spent,conversions\nA,x,10,4,1\nA,y,20,8,2\nB,x,7,4,0\n", {}, "over=device"),
    "windows": ("name,window,clicks,spent,conversions\nA,7,10,4,1\nA,30,21,8,3\nB,7,7,4,0\nB,30,9,6,1\n", {}, "over=window"),
    "a name's own total": ("name,day,clicks,spent,conversions\nA,1 May,10,4,1\nA,2 May,20,8,2\nA,,30,12,3\nB,1 May,5,2,1\nB,2 May,5,3,1\nB,,10,5,2\n", {}, "perhaps a total"),
    "counts as a log": ("Campaign,Sales,Cost\nA,5,50\nB,4,80.5\n", {"columns": {"name": "Campaign", "reward": "Sales"}}, "pulls="),
    "days as a log": ("name,date,reward,cost\nA,2024-05-01,5,50\nB,2024-05-01,4,80\nA,2024-05-02,3,20\nB,2024-05-02,1,10\n", {}, "pulls="),
    "empty rewards": ("name,reward,cost\na,1,1\nb,,3\na,,2\nb,,2\na,1,2\n", {}, "'' given"),
    "two costs": ("name,clicks,spent,cost,conversions\nA,100,50,60,5\nB,200,80,90,4\n", {}, "column spent+cost: '50 / 60' given"),
    "a stray quote": (HEAD + 'A,100,50,5\n"B,200,80,4\nC,1,2,3\n', {}, "not readable as CSV"),
    "a workbook": (b"PK\x03\x04 \xff and so on", {}, "data frame"),
    "no cost of one": ("a_score,a_cost,b_score,b_cost,c_score\n1,2,0,1,1\n0,2,1,1,1\n", {"wide": True}, "'c' lacks one"),
    "a number as time": (HEAD + "A,100,50,5\nB,200,80,4\n", {"columns": {"time": "7"}}, "'time=7' given"),
    "a price in dollars": ("a,b\n1,0\n0,1\n", {"wide": True, "columns": {"cost": "$1"}}, "what every request costs"),
    "a refund": (HEAD + "A,100,-5,5\nB,200,80,4\n", {}, "'-5' given"),
    "not available": (HEAD + "A,100,50,5\nB,200,80,n/a\n", {}, "'n/a' given"),
    "no cost of pulls": (HEAD + "A,100,50,5\nB,200,,4\n", {}, "line 3: pulls, and no cost"),
    "days without a title for them": ("name,tag,clicks,spent,conversions\nA,1.5.,10,4,1\nA,2.5.,20,8,2\nB,1.5.,7,4,0\n", {}, "time=tag"),
    "latin-1": ("Größe,clicks,spent,conversions\nA,1,2,1\nB,2,2,1\n".encode("cp1252"), {}, "--encoding"),
}  # fmt: skip

# Files whose titles are not known, and the columns of the command that the question ends with
GUESSES = [
    ('Week,Cost per results,Results,Ad,Amount spent,Link clicks\n"Nov 2",7.5,8,A,60,99\n"Nov 2",10,3,B,30,80\n', "name=Ad,pulls=Link clicks,reward=Results,cost=Amount spent"),
    ("user_id,creative,converted,cpc_usd\nu1,red,0,.3\nu2,red,1,.5\nu3,blue,yes,.4\nu4,blue,0,.2\n", "name=creative,reward=converted,cost=cpc_usd"),
    ("Ad,Code,Clicks,Cost,Leads\nA,USD,9,5,1\nB,USD,9,6,2\nC,EUR,9,5,3\nD,EUR,7,5,1\n", "name=Ad,pulls=Clicks,reward=Leads,cost=Cost,instance=Code"),
    ("Ad,CTR,Avg. CPC\nA,2%,.5\nB,3%,.6\n", "name=Ad,pulls=…,reward=…,cost=…"),
]  # fmt: skip
