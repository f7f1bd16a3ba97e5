package imagevector

import (
	"fmt"
	"regexp"
	"strings"
)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// PinDigests returns an overwrite vector that fixes images of v to the digests that digest knows, so that what runs is
// byte for byte what was built. The function is called with references as they are in pod specs
// ("registry.k8s.io/pause:3.10.2") and returns "" for an unknown one, whose entry is then skipped.
//
// For an entry without a tag, it is called with the plain repository ("registry.example/gardener/machine"), and with each of the target
// versions that it matches ("registry.k8s.io/kube-proxy:v1.36.3"), of which each known one gets an entry of its own.
func PinDigests(v Vector, targetVersions []string, digest func(ref string) (string, error)) (Vector, error) {
	var out Vector
	add := func(source Source, image Image, targetVersion *string) error {
		pinned, err := pin(image, digest)
		if err != nil || pinned.String() == image.String() {
			return err
		}
		source.Ref, source.Repository, source.Tag = nonEmpty(pinned.Ref), nonEmpty(pinned.Repository), nonEmpty(pinned.Tag)
		source.Version = nonEmpty(image.Version)
		source.TargetVersion = targetVersion
		out = append(out, source)
		return nil
	}
	for _, source := range v {
		if err := add(source, source.image(""), source.TargetVersion); err != nil {
			return nil, err
		}
		if source.Ref != nil || source.Tag != nil {
			continue
		}
		for _, version := range targetVersions {
			_, fits, err := Source{TargetVersion: source.TargetVersion}.score(Query{TargetVersion: version})
			if err != nil {
				return nil, fmt.Errorf("pin image %q: %w", source.Name, err)
			}
			if !fits {
				continue
			}
			exact := strings.TrimPrefix(version, "v")
			if err := add(source, source.image(version), &exact); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// pin returns the image with its digest added, or unchanged if it has one or the digest is unknown.
func pin(image Image, digest func(ref string) (string, error)) (Image, error) {
	ref := image.String()
	if strings.Contains(ref, "@") {
		return image, nil
	}
	d, err := digest(ref)
	switch {
	case err != nil:
		return Image{}, fmt.Errorf("digest of %s: %w", ref, err)
	case d == "":
		return image, nil
	case !digestForm.MatchString(d):
		return Image{}, fmt.Errorf("digest of %s: %q is not sha256: followed by 64 hexadecimal digits", ref, d)
	case image.Ref != "":
		image.Ref += "@" + d
	case image.Tag != "":
		image.Tag += "@" + d
	default:
		image.Tag = d
	}
	return image, nil
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
