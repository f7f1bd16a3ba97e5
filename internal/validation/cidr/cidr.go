// Package cidr validates networks in CIDR notation.
package cidr

import (
	"net/netip"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Network is a network with the path of its field.
type Network struct {
	// Path is the path of the field.
	Path *field.Path
	// Value is the value of the field.
	Value string
}

// List returns the networks of a list field.
func List(path *field.Path, values []string) []Network {
	out := make([]Network, 0, len(values))
	for i, value := range values {
		out = append(out, Network{Path: path.Index(i), Value: value})
	}
	return out
}

// Validate returns an error for every network that is not written in its shortest form, such as 10.0.0.0/8 or 2001:db8::/32.
func Validate(networks ...Network) field.ErrorList {
	var errs field.ErrorList
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(network.Value)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(network.Path, network.Value, "must be a network in CIDR notation, such as 10.0.0.0/8"))
		case prefix.Masked().String() != network.Value:
			errs = append(errs, field.Invalid(network.Path, network.Value, "must be written as "+prefix.Masked().String()))
		}
	}
	return errs
}

// ValidateDisjoint returns an error for every network that overlaps with one before it. Networks that Validate refuses are ignored.
func ValidateDisjoint(networks ...Network) field.ErrorList {
	var errs field.ErrorList
	for i, network := range networks {
		prefix, err := netip.ParsePrefix(network.Value)
		if err != nil {
			continue
		}
		for _, before := range networks[:i] {
			if other, err := netip.ParsePrefix(before.Value); err == nil && prefix.Overlaps(other) {
				errs = append(errs, field.Invalid(network.Path, network.Value, "must not overlap with "+before.Path.String()+" ("+before.Value+")"))
			}
		}
	}
	return errs
}

// ValidateFamilies returns errors if there are more than two networks, or two of the same IP family.
func ValidateFamilies(path *field.Path, values []string) field.ErrorList {
	if len(values) > 2 {
		return field.ErrorList{field.TooMany(path, len(values), 2)}
	}
	if len(values) < 2 {
		return nil
	}
	first, err1 := netip.ParsePrefix(values[0])
	second, err2 := netip.ParsePrefix(values[1])
	if err1 == nil && err2 == nil && first.Addr().Is4() == second.Addr().Is4() {
		return field.ErrorList{field.Invalid(path, values, "two networks must be of different IP families")}
	}
	return nil
}
