// Package skew decides which versions of Gardener's processes work with each other (docs/upgrades.md). Builds of a version are alike: what follows
// its three numbers is not compared.
package skew

import (
	"fmt"

	"github.com/Masterminds/semver/v3"
)

// UnreadableError is about a text that is no version, such as that of a build without one. Nothing is compared with it.
type UnreadableError struct {
	text string
	err  error
}

// Error implements error.
func (e *UnreadableError) Error() string { return fmt.Sprintf("version %q: %s", e.text, e.err) }

// Parse returns the version of a process. The error is an *UnreadableError.
func Parse(text string) (*semver.Version, error) {
	version, err := semver.NewVersion(text)
	if err != nil {
		return nil, &UnreadableError{text, err}
	}
	return version, nil
}

// Follow returns why gardener-operator with a version must not reconcile a Garden that another one has reconciled last, or nil. It may be newer by one
// minor version, and older within the minor version, so that a patch can be rolled back.
func Follow(last, own *semver.Version) error {
	switch distance := minors(last, own); {
	case distance < 0:
		return fmt.Errorf("it was reconciled by version v%s, and gardener-operator v%s must not go back to an earlier minor version", last, own)
	case distance > 1:
		return fmt.Errorf("it was reconciled by version v%s, and gardener-operator v%s must not skip a minor version", last, own)
	}
	return nil
}

// Agent returns why a gardenlet with a version must not act in a garden with another one, or nil. A newer gardenlet writes and reads what the garden
// does not know yet, and would lose it.
func Agent(garden, own *semver.Version) error {
	if minors(garden, own) > 0 {
		return fmt.Errorf("the garden has version v%s, and gardenlet v%s must not have a later minor version: upgrade the garden first", garden, own)
	}
	return nil
}

// Late returns why a gardenlet with a version should be upgraded before the garden is upgraded again, or nil. It still works: a seed whose gardenlet
// stopped would be worse.
func Late(garden, own *semver.Version) error {
	if minors(own, garden) > 1 {
		return fmt.Errorf("the garden has version v%s, and gardenlet v%s is older than the previous minor version, which was never tried together", garden, own)
	}
	return nil
}

// Replace returns why a gardenlet with a version must not replace the one that has reconciled a seed last, or nil. It may be newer by any number of minor
// versions, as a garden may have left it behind, and older within the minor version, so that a patch can be rolled back.
func Replace(last, next *semver.Version) error {
	if minors(last, next) < 0 {
		return fmt.Errorf("it was reconciled by gardenlet v%s, and gardenlet v%s must not go back to an earlier minor version", last, next)
	}
	return nil
}

// Same says whether two texts are builds of one version. Nothing is known of a text that is no version: it may be the same.
func Same(a, b string) bool {
	first, err := Parse(a)
	if err != nil {
		return true
	}
	second, err := Parse(b)
	if err != nil {
		return true
	}
	return minors(first, second) == 0 && first.Patch() == second.Patch()
}

// minors returns how many minor versions the second one is later. All of another major version are far away.
func minors(a, b *semver.Version) int {
	const far = 1000
	return (int(b.Major())-int(a.Major()))*far + int(b.Minor()) - int(a.Minor()) //nolint:gosec // versions are small
}
