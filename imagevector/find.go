package imagevector

import (
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"
)

const (
	amd64 = "amd64"
	arm64 = "arm64"

	digestPrefix = "sha256:"
)

// Query describes what an image is for. An empty field does not restrict the result.
type Query struct {
	// RuntimeVersion is the version of the Kubernetes cluster that the image runs on.
	RuntimeVersion string
	// TargetVersion is the version of the Kubernetes cluster that the image works for. It becomes the tag of an image
	// whose entry has none.
	TargetVersion string
	// Architecture is the architecture of the machine; amd64 if empty.
	Architecture string
}

// String describes the query for error messages.
func (q Query) String() string {
	var parts []string
	for _, p := range []struct{ what, value string }{
		{"runtime version", q.RuntimeVersion},
		{"target version", q.TargetVersion},
		{"architecture", q.architecture()},
	} {
		if p.value != "" {
			parts = append(parts, p.what+" "+p.value)
		}
	}
	return strings.Join(parts, ", ")
}

func (q Query) architecture() string {
	if q.Architecture == "" {
		return amd64
	}
	return q.Architecture
}

// Find returns the image of the given name whose entry fits the query most specifically: an exact version ("1.36.3",
// "= 1.36.3") counts more than a range, a range more than no constraint, one architecture more than several. Of equally
// specific entries the first one is used. A constraint on a field that is empty in the query is ignored.
func (v Vector) Find(name string, q Query) (Image, error) {
	var (
		best      *Source
		bestScore int
	)
	for i := range v {
		if v[i].Name != name {
			continue
		}
		score, fits, err := v[i].score(q)
		if err != nil {
			return Image{}, fmt.Errorf("find image %q: %w", name, err)
		}
		if fits && (best == nil || score > bestScore) {
			best, bestScore = &v[i], score
		}
	}
	if best == nil {
		return Image{}, fmt.Errorf("no image %q for %s in the image vector", name, q)
	}
	return best.image(q.TargetVersion), nil
}

// score says how specifically an entry matches a query, and whether it matches at all.
func (s Source) score(q Query) (score int, fits bool, err error) {
	for _, c := range []struct {
		constraint *string
		version    string
	}{
		{s.RuntimeVersion, q.RuntimeVersion},
		{s.TargetVersion, q.TargetVersion},
	} {
		if c.constraint == nil || c.version == "" {
			continue
		}
		met, err := satisfies(c.version, *c.constraint)
		if err != nil || !met {
			return 0, false, err
		}
		if isExact(*c.constraint) {
			score++
		}
		score++
	}

	architectures := s.Architectures
	if architectures == nil {
		architectures = []string{amd64, arm64}
	}
	if !slices.Contains(architectures, q.architecture()) {
		return 0, false, nil
	}
	if len(architectures) == 1 {
		score++
	}
	return score, true, nil
}

// satisfies ignores the suffix of a version: 1.36.3-gke.7 satisfies what 1.36.3 does.
func satisfies(version, constraint string) (bool, error) {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("version constraint %q: %w", constraint, err)
	}
	release := version
	if i := strings.IndexAny(version, "-+"); i >= 0 {
		release = version[:i]
	}
	parsed, err := semver.NewVersion(release)
	if err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	return c.Check(parsed), nil
}

func isExact(constraint string) bool {
	constraint = strings.TrimSpace(constraint)
	if strings.HasPrefix(constraint, "=") {
		return true
	}
	_, err := semver.StrictNewVersion(strings.TrimPrefix(constraint, "v"))
	return err == nil
}

func (s Source) image(targetVersion string) Image {
	if s.Ref != nil {
		return Image{Name: s.Name, Ref: *s.Ref, Version: ptr.Deref(s.Version, "")}
	}
	image := Image{Name: s.Name, Repository: ptr.Deref(s.Repository, ""), Tag: ptr.Deref(s.Tag, ""), Version: ptr.Deref(s.Version, "")}
	if image.Tag == "" && targetVersion != "" {
		image.Tag = "v" + strings.TrimPrefix(targetVersion, "v")
	}
	if image.Version == "" {
		image.Version = image.Tag
	}
	return image
}
