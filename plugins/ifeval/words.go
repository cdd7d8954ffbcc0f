package main

// The commonest words of languages that share a script: a language a line.
const (
	latinWords = `
en the of and to in a an is that for it with as was on are be this by you or from at not have i my we your will they but all his her me our can so if no what when who there one more out up here
de der die und das ist nicht ein eine zu den mit von auf für sich ich es dem im auch als an werden aus er wir sie bei oder
fr le la les de des et un une est que pour dans qui ce il pas sur au plus par je avec ne se sont vous nous elle ou
es el la los de y en que un una es por con para las del se no su al lo como más pero sus este ha yo si
pt o a os de e que do da em um uma para com não no na é os por mais as dos como mas ao ele das você são seu
it il di che e la un una per non è con del in sono le si da come della i al gli ho ma anche nel più
nl de het een en van is dat op te in zijn niet met voor er aan die ik je ook als maar
sv och att det i en som är av för med den till på inte har om jag ett de
da og at det er en til af på for med den ikke som de har jeg et
no og det er en til av på for med som ikke den jeg har å
fi ja on ei se että oli hän en mutta kuin myös joka ovat tai jos niin ole minä sinä kun mitä sen voi kanssa ovat
pl i w nie na się z do to że jest o jak po a co ale za od przez dla są jego
cs a se v na je že s z do to o jako by ale pro jsem za si ve
ro și de la în a nu cu pe este un o că din care mai pentru sunt
tr ve bir bu da de için ile ne çok ben daha gibi kadar o ama en olan
vi và của là có cho không được một các trong với những người này đã để khi bạn tôi từ về như
id dan yang di ini itu dengan untuk tidak dari dalam adalah pada saya akan ke ada bisa
sw na ya wa kwa ni katika la za kuwa cha hii kama vya yake hiyo au lakini kwamba wakati sana huu mimi wewe pia moja
tl ang ng sa na mga at ay ito hindi ko mo ni para kung`

	cyrillicWords = `
ru и в не на что с по он это как я из для его но все за от
uk і в не на що з по він це як я із для його але все за від та
bg и в не на че с по той това как аз от за да се са е си като
mk и во не на дека со по тој ова како јас од за да се
sr и у не на да с по он ово како ја из за је су се`

	devanagariWords = `
hi है हैं के का की में और को से पर यह नहीं एक ने था थे थी लिए भी कि जो हो तो करने करें आप वह
mr आहे आहेत आणि च्या ची चे ते या तो नाही एक मी हे ही होते साठी करा मध्ये व त्या तुम्ही आपल्या
ne छ छन् र को का मा लाई हो यो एक ले भएको गर्न पनि हुन्छ गर्छ तपाईं हामी म लागि थियो`
)
