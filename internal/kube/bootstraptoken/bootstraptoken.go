// Package bootstraptoken says whose gardenlet a bootstrap token of the garden is for, by the token's description.
package bootstraptoken

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/authorizer/graph"
)

// The parts of descriptions around the names.
const (
	resourcePrefix    = "A bootstrap token for the Gardenlet for seedmanagement.gardener.cloud/v1alpha1."
	managedSeedPrefix = resourcePrefix + KindManagedSeed + " resource "
	gardenletPrefix   = resourcePrefix + KindGardenlet + " resource "
	resourceSuffix    = "."
	connectPrefix     = "Used for connecting the self-hosted Shoot "
	connectSuffix     = " to Gardener via 'gardenadm connect'"
)

// userPrefix begins the name of the user of a token.
const userPrefix = "system:bootstrap:"

// DescriptionKey is the key of the description in the Secret of a token.
const DescriptionKey = "description"

// Token is what the description of a token says.
type Token struct {
	// Gardenlet is the one that the token is for.
	Gardenlet
	// Kind is how the description names the gardenlet: ManagedSeed or Gardenlet. It is empty for tokens of gardenadm, and for those
	// whose description names none.
	Kind string
}

// Kinds of objects in descriptions.
const (
	KindManagedSeed = "ManagedSeed"
	KindGardenlet   = "Gardenlet"
)

// Gardenlet is the gardenlet that a token is for. At most one field is set; the zero value means that the description names none, as with
// the tokens that operators create.
type Gardenlet struct {
	// Seed is the name of the seed, if it is the gardenlet of a seed.
	Seed string
	// Shoot is the self-hosted shoot, if it is the gardenlet of one.
	Shoot types.NamespacedName
}

// ForSeed returns the description of a token for the gardenlet of a seed.
func ForSeed(seed string) string {
	return gardenletPrefix + constants.GardenNamespace + "/" + seed + resourceSuffix
}

// ForManagedSeed returns the description of a token for the gardenlet of a ManagedSeed.
func ForManagedSeed(name string) string {
	return managedSeedPrefix + constants.GardenNamespace + "/" + name + resourceSuffix
}

// Of returns what the description of a token says. Whoever decides by descriptions does it by this: a token that one part takes for that of
// some gardenlet, and another for that of an operator, would be good for more than the former allowed.
func Of(description string) Token {
	if name, ok := named(description, managedSeedPrefix, resourceSuffix); ok {
		return ofSeed(name, KindManagedSeed)
	}
	if name, ok := named(description, gardenletPrefix, resourceSuffix); ok {
		if shoot, hosted := strings.CutPrefix(name.Name, graph.SelfHostedPrefix); hosted {
			return Token{Gardenlet{Shoot: types.NamespacedName{Namespace: name.Namespace, Name: shoot}}, KindGardenlet}
		}
		return ofSeed(name, KindGardenlet)
	}
	shoot, _ := named(description, connectPrefix, connectSuffix)
	return Token{Gardenlet: Gardenlet{Shoot: shoot}}
}

// ofSeed returns the token for the seed that a ManagedSeed or a Gardenlet is for. Only those in the namespace garden are for seeds.
func ofSeed(name types.NamespacedName, kind string) Token {
	if name.Namespace != constants.GardenNamespace {
		return Token{}
	}
	return Token{Gardenlet{Seed: name.Name}, kind}
}

// named returns the namespace and the name between two texts.
func named(description, prefix, suffix string) (types.NamespacedName, bool) {
	rest, begins := strings.CutPrefix(description, prefix)
	rest, ends := strings.CutSuffix(rest, suffix)
	namespace, name, both := strings.Cut(rest, "/")
	if !begins || !ends || !both || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, true
}

// ID returns the ID of the bootstrap token that a user authenticated with.
func ID(user string) (string, bool) { return strings.CutPrefix(user, userPrefix) }

// Read returns the gardenlet that the token with an ID is for.
func Read(ctx context.Context, gardenAPI client.Reader, id string) (Gardenlet, error) {
	token := &corev1.Secret{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: graph.BootstrapTokenPrefix + id}
	if err := gardenAPI.Get(ctx, key, token); err != nil {
		return Gardenlet{}, err
	}
	return Of(string(token.Data[DescriptionKey])).Gardenlet, nil
}
