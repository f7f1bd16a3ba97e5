package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Scope says for whom an edge counts.
type Scope uint8

const (
	// Both counts for seeds and for self-hosted shoots.
	Both Scope = iota
	// Seeds counts for seeds only.
	Seeds
	// Shoots counts for self-hosted shoots only.
	Shoots
)

// Edge says that a client that may reach one object may also reach another: To refers to From, or From belongs to To.
type Edge struct {
	From, To Key
	Scope    Scope
}

// Object is what the graph keeps of an object. Each edge belongs to the object that declares it, and goes with that object only.
type Object struct {
	Key   Key
	Edges []Edge
	// Renew of a ManagedSeed or Gardenlet says that its gardenlet is to get a new client certificate.
	Renew bool
	// Bootstrap of a ManagedSeed says with what its gardenlet gets its first client certificate.
	Bootstrap Bootstrap
	// Expiration of a Seed is when the client certificate of its gardenlet expires; zero if that is not known.
	Expiration time.Time
	// SelfHosted of a Shoot says that its control plane runs on its own nodes, so that it has clients in the garden.
	SelfHosted bool
	// ManagedIssuer of a Shoot is its UID if its issuer of service account tokens is managed by Gardener, otherwise empty.
	ManagedIssuer types.UID
}

// Bootstrap is how the gardenlet of a ManagedSeed gets its first client certificate.
type Bootstrap uint8

const (
	// BootstrapNone means that it has one already, or that another component creates it.
	BootstrapNone Bootstrap = iota
	// BootstrapToken means a bootstrap token, a Secret in namespace kube-system.
	BootstrapToken
	// BootstrapServiceAccount means the token of a ServiceAccount, which a ClusterRoleBinding allows to request certificates.
	BootstrapServiceAccount
)

// Names of objects with which gardenlets of new seeds get their client certificates.
const (
	// BootstrapTokenPrefix begins the names of Secrets with bootstrap tokens.
	BootstrapTokenPrefix = "bootstrap-token-"
	// SeedBootstrapper is the ClusterRole for gardenlets that have no client certificate yet.
	SeedBootstrapper = "gardener.cloud:system:seed-bootstrapper"

	bootstrapAccountPrefix = "gardenlet-bootstrap-"
	bootstrapBindingPrefix = SeedBootstrapper + ":"
)

// SelfHostedPrefix begins the names of the Gardenlet and of the Lease of a self-hosted shoot.
const SelfHostedPrefix = "self-hosted-shoot-"

// TokenID returns the ID of the bootstrap token for the gardenlet of an object: six hexadecimal digits.
func TokenID(namespace, name string) string {
	if namespace != "" {
		name = namespace + "--" + name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:6]
}

// BootstrapTokenName returns the name of the Secret in kube-system with the bootstrap token for the gardenlet of an object.
func BootstrapTokenName(namespace, name string) string {
	return BootstrapTokenPrefix + TokenID(namespace, name)
}

// BootstrapServiceAccountName returns the name of the ServiceAccount for the gardenlet of a ManagedSeed.
func BootstrapServiceAccountName(name string) string { return bootstrapAccountPrefix + name }

// BootstrapBindingName returns the name of the ClusterRoleBinding for the gardenlet of a ManagedSeed.
func BootstrapBindingName(namespace, name string) string {
	return bootstrapBindingPrefix + namespace + ":" + bootstrapAccountPrefix + name
}

// Bootstrapped returns the ManagedSeed whose gardenlet gets its certificate with a ServiceAccount or its ClusterRoleBinding.
func Bootstrapped(key Key) (managedSeed Key, ok bool) {
	switch key.Kind {
	case ServiceAccount:
		name, ok := strings.CutPrefix(key.Name, bootstrapAccountPrefix)
		return Key{ManagedSeed, key.Namespace, name}, ok
	case ClusterRoleBinding:
		if rest, ok := strings.CutPrefix(key.Name, bootstrapBindingPrefix); ok {
			namespace, account, _ := strings.Cut(rest, ":")
			name, ok := strings.CutPrefix(account, bootstrapAccountPrefix)
			return Key{ManagedSeed, namespace, name}, ok
		}
	}
	return Key{}, false
}
