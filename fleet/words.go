package fleet

import "strings"

// The words of a code: short, unlike each other when spoken, none offensive.
// Each list has at least 256 words; adding some is fine, taking some is not.

func animals() []string {
	return strings.Fields(`
adder albatross alpaca anchovy ant antelope ape asp auk avocet badger barbel barracuda basilisk bass bat beagle bear
beaver bee beetle bison bittern boa boar bobcat bonito bream budgie buffalo bug bull bullfinch bumblebee bunny bustard
buzzard camel canary caribou carp cat caterpillar catfish chaffinch chameleon cheetah chick chicken chinchilla chipmunk
cicada clam cobra cod condor coral cormorant cougar cow coyote crab crane crayfish cricket crocodile crow cuckoo curlew
dalmatian deer dingo dodo dog dolphin donkey dormouse dove dragonfly drake dromedary duck dugong dunlin eagle earwig
eel egret eider eland elephant elk emu ermine falcon ferret finch firefly flamingo flounder fly foal fox frog fulmar
gadfly gannet gazelle gecko gerbil gibbon giraffe gnat gnu goat goldfish goose gopher gorilla grasshopper grebe
greyhound grouse guppy haddock hake halibut hamster hare harrier hawk hedgehog hen heron herring hippo hobby hornet
horse hound hummingbird husky hyena ibex ibis iguana impala jackal jackdaw jaguar jay jellyfish kangaroo kestrel
kingfisher kitten kiwi koala kudu ladybird lamb lamprey lapwing lark lemming lemur leopard limpet linnet lion lizard
llama lobster locust loon loris lynx macaw mackerel magpie mallard mammoth manatee mantis marlin marmot marten meerkat
merlin minnow mole mongoose monkey moose mosquito moth mouse mule mullet mussel narwhal newt nightjar ocelot octopus
okapi opossum orca oriole osprey ostrich otter owl ox oyster panda panther parrot partridge peacock pelican penguin
perch pheasant pig pigeon pike piranha plover pony porcupine porpoise prawn puffin puma puppy python quail quokka
rabbit raccoon ram raven reindeer rhino robin rook rooster salmon sardine scorpion seagull seahorse seal shark sheep
shrew shrimp skunk sloth snail snake sparrow spider squid squirrel starling stingray stork swallow swan swift tapir
tern thrush tiger toad tortoise toucan trout tuna turkey turtle viper vole vulture walrus warbler wasp weasel whale
wolf wombat woodpecker worm wren yak zebra`)
}

func colours() []string {
	return strings.Fields(`
acorn agate alabaster almond amber amethyst apple apricot aqua ash aspen aubergine auburn azure bamboo banana barley
basalt basil bay beech beige berry birch biscuit black blonde blue blush brass brick bronze brown butter buttercup
cacao camellia candle caramel cardinal carmine carrot cedar celery cerise chalk charcoal cherry chestnut chilli
chocolate chrome cider cinnamon citrus claret clay clover cloud cobalt cocoa coconut coffee copper cork corn cotton
cranberry cream crimson crystal currant cyan cypress daffodil dahlia daisy damson dandelion dawn denim desert diamond
dusk dust ebony ecru elder elm emerald fawn fennel fern fig fir flame flax flint forest frost fuchsia garnet ginger
glacier gold granite grape grass graphite gravel green grey hazel heather hemp henna hickory holly honey ice indigo ink
iris iron ivory ivy jade jasmine jasper jet juniper khaki lava lavender leaf lemon lentil lichen lilac lily lime linen
lotus magenta magnolia mahogany maize mango maple marble marigold marine maroon marzipan mauve meadow melon midnight
mint mist mocha moon moss mud mulberry mustard myrtle navy nectar nettle nickel night nougat nutmeg oak oat ochre olive
onyx opal orange orchid oregano paper paprika parchment parsley peach peanut pear pearl pebble pepper peridot petrol
pewter pine pink pistachio platinum plum pollen pomelo poplar poppy porcelain primrose prune pumpkin purple quartz
quince raisin raspberry red reed rhubarb rice rose rosemary ruby russet rust rye saffron sage sand sandal sapphire
satin scarlet sepia sesame shell sienna silk silver sky slate smoke snow soot sorrel spruce steel stone storm straw
sugar sulphur sunset tan tangerine tarragon teak teal thistle thyme tin titan toffee tomato topaz tulip turquoise
twilight ultramarine umber vanilla velvet verdigris vermilion violet walnut water wax wheat white willow wine wood wool
yellow yew zinc`)
}
