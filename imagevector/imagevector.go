// Package imagevector says which container image to run for a component: name and versions in, image reference out.
//
// images.yaml, embedded here, lists the images of a release by their public names. Operators replace entries with an
// overwrite file of the same format, named by the environment variable IMAGEVECTOR_OVERWRITE; the image vectors of
// components that bring their own (etcd-druid, for example) are overwritten by the file that
// IMAGEVECTOR_OVERWRITE_COMPONENTS names. Both files are those of the original Gardener and work unchanged:
//
//	images:
//	- name: kube-proxy                  # required; several entries may share a name and differ in their constraints
//	  sourceRepository: github.com/...  # where the sources are; for information
//	  repository: registry.example/a/b  # either repository and tag ...
//	  tag: v1.2.3                       # "v1.2.3", "sha256:..." or "v1.2.3@sha256:..."; without it the target version
//	  ref: registry.example/a/b:v1.2.3  # ... or the full reference
//	  version: 1.2.3                    # for information, if tag or ref does not contain it
//	  runtimeVersion: ">= 1.34"         # Kubernetes versions that the image runs on
//	  targetVersion: "1.36.x"           # Kubernetes versions that the image works for
//	  architectures: [amd64, arm64]     # both, if missing
//
// Other keys, such as labels and resourceId, are accepted and ignored.
//
// References are public names everywhere, also in the local landscape: there, a hosts.toml per registry configures containerd on each
// machine to pull from a local mirror, which serves registry.k8s.io/pause under that very name. An overwrite file is for
// other images, or for pinning digests (see PinDigests), not for mirrors.
package imagevector

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

//go:embed images.yaml
var defaultImages []byte

// Source is one entry of an image vector: an image and the versions and architectures that it is for.
// Overwrite and Validate distinguish a field that is nil, and so not set, from an empty one.
type Source struct {
	// Name is what components look the image up by; entries that differ in their constraints may share it.
	Name string `json:"name"`
	// SourceRepository is where the sources of the image are; for information.
	SourceRepository string `json:"sourceRepository,omitempty"`
	// RuntimeVersion constrains the version of the Kubernetes cluster that the image runs on, as in ">= 1.34, < 1.37".
	RuntimeVersion *string `json:"runtimeVersion,omitempty"`
	// TargetVersion constrains the version of the Kubernetes cluster that the image works for: for a control plane
	// component, the shoot's, while RuntimeVersion is about the seed's.
	TargetVersion *string `json:"targetVersion,omitempty"`
	// Architectures are the machine architectures of the image, amd64 or arm64; none means both.
	Architectures []string `json:"architectures,omitempty"`
	// Ref is the full reference of the image. It excludes Repository and Tag.
	Ref *string `json:"ref,omitempty"`
	// Repository is the reference of the image without tag and digest.
	Repository *string `json:"repository,omitempty"`
	// Tag is a tag, a digest ("sha256:...") or both ("v1.2.3@sha256:..."). Without one, the target version of the
	// Query is the tag, as in "v1.36.3".
	Tag *string `json:"tag,omitempty"`
	// Version is the version of the image, for information, if tag or reference do not contain it.
	Version *string `json:"version,omitempty"`
}

// Vector is a list of images. If two entries match a Query equally well, the first one is used.
type Vector []Source

type vectorFile struct {
	Images Vector `json:"images"`
}

// Default returns the images of this release, without any overwrite.
func Default() (Vector, error) {
	v, err := Read(defaultImages)
	if err != nil {
		return nil, fmt.Errorf("embedded image vector: %w", err)
	}
	return v, nil
}

// Read parses and validates an image vector. Unknown keys of an entry are ignored, because files written for the original
// Gardener have some; a document without `images` is refused, because it is most likely another file.
func Read(data []byte) (Vector, error) {
	v, err := parse(data)
	if err != nil {
		return nil, err
	}
	if errs := v.Validate(field.NewPath("images")); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return v, nil
}

func parse(data []byte) (Vector, error) {
	var file vectorFile
	if err := unmarshal(data, "images", &file); err != nil {
		return nil, fmt.Errorf("parse image vector: %w", err)
	}
	return file.Images, nil
}

// unmarshal parses a document that must have the given key, unless it is empty.
func unmarshal(data []byte, key string, into any) error {
	var keys map[string]any
	if err := yaml.Unmarshal(data, &keys); err != nil {
		return err
	}
	if _, ok := keys[key]; !ok && len(keys) > 0 {
		return fmt.Errorf("no key %q among %q: is this another file?", key, slices.Sorted(maps.Keys(keys)))
	}
	return yaml.Unmarshal(data, into)
}

// Write writes an image vector in the format that Read reads.
func (v Vector) Write(w io.Writer) error {
	out, err := yaml.Marshal(vectorFile{Images: v})
	if err != nil {
		return fmt.Errorf("render image vector: %w", err)
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write image vector: %w", err)
	}
	return nil
}

// Overwrite returns the vector with the entries of overwrite merged into it. An entry with the same name, runtime version,
// target version and architectures replaces the fields that it sets and keeps the others; a repository replaces a
// ref, and a ref replaces repository and tag. Every other entry is appended, and found if it matches a Query better.
func (v Vector) Overwrite(overwrite Vector) Vector {
	out := make(Vector, 0, len(v)+len(overwrite))
	index := make(map[string]int, len(v)+len(overwrite))
	for _, source := range slices.Concat(v, overwrite) {
		key := source.key()
		if i, ok := index[key]; ok {
			out[i] = out[i].overwrittenBy(source)
			continue
		}
		index[key] = len(out)
		out = append(out, source)
	}
	return out
}

// key identifies an entry for Overwrite. Constraints are compared as text: ">=1.34" and ">= 1.34" are two entries.
func (s Source) key() string {
	architectures := slices.Sorted(slices.Values(s.Architectures))
	return fmt.Sprintf("%q %q %q %q", s.Name, ptr.Deref(s.RuntimeVersion, ""), ptr.Deref(s.TargetVersion, ""), architectures)
}

func (s Source) overwrittenBy(o Source) Source {
	if o.Version == nil {
		o.Version = s.Version
	}
	if o.SourceRepository == "" {
		o.SourceRepository = s.SourceRepository
	}
	switch {
	case o.Ref != nil:
	case o.Repository == nil && o.Tag == nil:
		o.Ref, o.Repository, o.Tag = s.Ref, s.Repository, s.Tag
	case o.Repository == nil:
		o.Repository = s.Repository
	case o.Tag == nil:
		o.Tag = s.Tag
	}
	return o
}

// Image is a reference that can be pulled.
type Image struct {
	// Name is the name of the entry in the image vector.
	Name string
	// Ref is the full reference, if the entry has one; Repository and Tag are empty then.
	Ref string
	// Repository is the reference without tag and digest.
	Repository string
	// Tag is a tag, a digest or both, as in Source.
	Tag string
	// Version is the version of the image, for logs, labels and status fields.
	Version string
}

// String returns the reference to pull: "repository:tag", "repository@digest" or "repository:tag@digest".
func (i Image) String() string {
	switch {
	case i.Ref != "":
		return i.Ref
	case i.Tag == "":
		return i.Repository
	case strings.HasPrefix(i.Tag, digestPrefix):
		return i.Repository + "@" + i.Tag
	default:
		return i.Repository + ":" + i.Tag
	}
}

// WithDefaultTag returns the image with the given tag if it has none, for the images that are released together with the
// binary that looks them up.
func (i Image) WithDefaultTag(tag string) Image {
	if i.Ref == "" && i.Tag == "" {
		i.Tag = tag
		if i.Version == "" {
			i.Version = tag
		}
	}
	return i
}
