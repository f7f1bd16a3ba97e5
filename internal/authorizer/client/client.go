// Package client tells for which seed or self-hosted shoot a request to the garden is made, from its user and groups.
package client

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// Type is the kind of program that makes requests.
type Type string

const (
	// Gardenlet is the agent of a seed or of a self-hosted shoot.
	Gardenlet Type = "gardenlet"
	// Extension is an extension controller on a seed or in a self-hosted shoot, with a ServiceAccount of the garden.
	Extension Type = "extension"
	// Gardenadm is the command that connects a self-hosted shoot to the garden.
	Gardenadm Type = "gardenadm"
)

// Names that ServiceAccounts of extensions are recognized by.
const (
	extensionPrefix      = "extension-"
	shootExtensionPrefix = "extension-shoot--"
	groupOfNamespace     = serviceaccount.ServiceAccountGroupPrefix
)

// Seed is the client of a seed.
type Seed struct {
	Type Type
	// Name is that of the seed.
	Name string
}

// Shoot is the client of a self-hosted shoot.
type Shoot struct {
	Type Type
	// NamespacedName is that of the Shoot. Its parts are not checked.
	types.NamespacedName
}

// OfSeed returns the client of a seed that a user is.
func OfSeed(u user.Info) (Seed, bool) {
	switch {
	case u == nil:
		return Seed{}, false
	case slices.Contains(u.GetGroups(), constants.SeedsGroup):
		name, ok := strings.CutPrefix(u.GetName(), constants.SeedUserNamePrefix)
		return Seed{Gardenlet, name}, ok && name != ""
	case slices.Contains(u.GetGroups(), serviceaccount.AllServiceAccountsGroup):
		// The group is set by the API server that issued the token, like the user name.
		at := slices.IndexFunc(u.GetGroups(), func(group string) bool { return strings.HasPrefix(group, groupOfNamespace) })
		if at < 0 {
			return Seed{}, false
		}
		namespace := strings.TrimPrefix(u.GetGroups()[at], groupOfNamespace)
		name, ok := strings.CutPrefix(namespace, constants.SeedNamespaceNamePrefix)
		account := strings.HasPrefix(u.GetName(), serviceaccount.MakeUsername(namespace, extensionPrefix))
		return Seed{Extension, name}, ok && name != "" && account
	}
	return Seed{}, false
}

// OfShoot returns the client of a self-hosted shoot that a user is.
func OfShoot(u user.Info) (Shoot, bool) {
	switch {
	case u == nil:
		return Shoot{}, false
	case slices.Contains(u.GetGroups(), constants.ShootsGroup):
		if name, ok := strings.CutPrefix(u.GetName(), constants.ShootUserNamePrefix); ok {
			return shootOf(Gardenlet, name)
		}
		if name, ok := strings.CutPrefix(u.GetName(), constants.GardenadmUserNamePrefix); ok {
			return shootOf(Gardenadm, name)
		}
	case slices.Contains(u.GetGroups(), serviceaccount.AllServiceAccountsGroup):
		namespace, account, err := serviceaccount.SplitUsername(u.GetName())
		if err != nil || namespace != constants.GardenNamespace && !strings.HasPrefix(namespace, constants.ProjectNamespacePrefix) {
			return Shoot{}, false
		}
		shoot, ok := ShootOfServiceAccount(account)
		return Shoot{Extension, types.NamespacedName{Namespace: namespace, Name: shoot}}, ok
	}
	return Shoot{}, false
}

// ShootOfServiceAccount returns the self-hosted shoot that an extension's ServiceAccount is for, by the name of the ServiceAccount.
func ShootOfServiceAccount(account string) (string, bool) {
	rest, ok := strings.CutPrefix(account, shootExtensionPrefix)
	if !ok {
		return "", false
	}
	shoot, _, ok := strings.Cut(rest, "--")
	return shoot, ok && shoot != ""
}

func shootOf(t Type, name string) (Shoot, bool) {
	parts := strings.Split(name, ":")
	if len(parts) != 2 {
		return Shoot{}, false
	}
	return Shoot{t, types.NamespacedName{Namespace: parts[0], Name: parts[1]}}, true
}
