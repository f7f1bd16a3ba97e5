package wave

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"
	"k8s.io/utils/ptr"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/skew"
)

// Target is what gardenlets are upgraded to.
type Target struct {
	// version is what the new gardenlets report.
	version *semver.Version
	// tag is that of charts and images.
	tag string
	// ref is the whole reference of the chart. Without it, each Gardenlet keeps its repository, and gets the tag.
	ref string
	// overwrites are those that belong to the chart.
	overwrites Overwrites
	// follows says that Gardenlets have them from gardener-operator, unless they have their own.
	follows bool
}

// Overwrites are image vector overwrites of gardenlets, as text: without those of its release, a chart would come with the images of another one. Nil leaves what
// Gardenlets have, and empty means none.
type Overwrites struct {
	Images, Components *string
}

const (
	// AnnotationImages is on Gardenlets whose image vector overwrite gardener-operator has written, with its checksum: with another one, it is their own.
	AnnotationImages = "operator.gardener.cloud/image-vector-overwrite"
	// AnnotationComponents is the same for the overwrites of components that deploy images themselves.
	AnnotationComponents = "operator.gardener.cloud/component-image-vector-overwrite"
)

// ParseTarget returns the target of a version, of the whole reference of a chart, or of both, if the tag of the chart does not say which version the gardenlet
// in it reports.
func ParseTarget(version, ref string, overwrites Overwrites) (Target, error) {
	if version == "" && ref == "" {
		return Target{}, errors.New("neither a version nor a reference of a chart is given")
	}
	tag := strings.ReplaceAll(version, "+", "_") // as Helm does, because tags have no "+"
	if version == "" {
		_, tag = splitTag(ref)
		if strings.Contains(ref, "@") || tag == "" {
			return Target{}, fmt.Errorf("the chart %q has no version as its tag, so say too which version its gardenlet reports", ref)
		}
		version = strings.ReplaceAll(tag, "_", "+")
	}
	parsed, err := semver.StrictNewVersion(strings.TrimPrefix(version, "v"))
	if err != nil {
		return Target{}, fmt.Errorf("version %q: %w", version, err)
	}
	return Target{version: parsed, tag: tag, ref: ref, overwrites: overwrites}, nil
}

// String is the version.
func (t Target) String() string { return "v" + t.version.String() }

// reported says whether a gardenlet that reports a version is the one of the target.
func (t Target) reported(version string) bool {
	parsed, err := skew.Parse(version)
	return err == nil && parsed.Equal(t.version)
}

// deployment changes the chart of a Gardenlet and its image vector overwrites, and its image if it names one.
func (t Target) deployment(g *seedmanagementv1alpha1.Gardenlet) error {
	d := &g.Spec.Deployment
	d.Helm.OCIRepository = t.chart(d.Helm.OCIRepository)
	d.ImageVectorOverwrite = t.overwrite(g, d.ImageVectorOverwrite, t.overwrites.Images, AnnotationImages)
	d.ComponentImageVectorOverwrite = t.overwrite(g, d.ComponentImageVectorOverwrite, t.overwrites.Components, AnnotationComponents)
	if !pinned(d.Image) {
		return nil
	}
	return t.image(d.Image)
}

// overwrite returns an image vector overwrite of a Gardenlet, instead of another one, and remembers in an annotation that it is not the Gardenlet's own.
func (t Target) overwrite(g *seedmanagementv1alpha1.Gardenlet, current, text *string, annotation string) *string {
	if text == nil || !t.follows {
		return cmp.Or(text, current)
	}
	if current != nil && !written(g, *current, annotation) || current == nil && *text == "" {
		return current
	}
	setAnnotation(g, annotation, workload.Checksum(*text))
	return text
}

// written says whether gardener-operator has written an image vector overwrite of a Gardenlet.
func written(g *seedmanagementv1alpha1.Gardenlet, current, annotation string) bool {
	return g.Annotations[annotation] == workload.Checksum(current)
}

// keeps says whether a Gardenlet has an image vector overwrite that stays as it is, and may be that of another release.
func (t Target) keeps(g *seedmanagementv1alpha1.Gardenlet) bool {
	kept := func(current, text *string, annotation string) bool {
		return ptr.Deref(current, "") != "" && (text == nil || t.follows && !written(g, *current, annotation))
	}
	d := &g.Spec.Deployment
	return kept(d.ImageVectorOverwrite, t.overwrites.Images, AnnotationImages) ||
		kept(d.ComponentImageVectorOverwrite, t.overwrites.Components, AnnotationComponents)
}

// outdated says whether a Gardenlet has an image vector overwrite that gardener-operator has written for another release.
func (t Target) outdated(g *seedmanagementv1alpha1.Gardenlet) bool {
	former := func(current, text *string, annotation string) bool {
		return current != nil && text != nil && *current != *text && written(g, *current, annotation)
	}
	d := &g.Spec.Deployment
	return former(d.ImageVectorOverwrite, t.overwrites.Images, AnnotationImages) ||
		former(d.ComponentImageVectorOverwrite, t.overwrites.Components, AnnotationComponents)
}

// chart returns the chart of the target, instead of another one.
func (t Target) chart(chart gardencorev1.OCIRepository) gardencorev1.OCIRepository {
	switch {
	case t.ref != "":
		return gardencorev1.OCIRepository{Ref: &t.ref, PullSecretRef: chart.PullSecretRef, CABundleSecretRef: chart.CABundleSecretRef}
	case chart.Ref != nil:
		repository, _ := splitTag(*chart.Ref)
		chart.Ref = new(repository + ":" + t.tag)
	default:
		chart.Tag, chart.Digest = &t.tag, nil
	}
	return chart
}

// pinned says whether an image does not come from the chart.
func pinned(image *seedmanagementv1alpha1.Image) bool {
	return image != nil && (image.Ref != nil || image.Tag != nil)
}

// image changes an image that does not come from the chart.
func (t Target) image(image *seedmanagementv1alpha1.Image) error {
	if t.tag == "" {
		return errors.New("it has an image of its own, which does not follow gardener-operator")
	}
	if image.Ref == nil {
		image.Tag = &t.tag
		return nil
	}
	if strings.Contains(*image.Ref, "@") {
		return errors.New("its image has a digest, which no version follows from: remove the image, so that it comes from the chart")
	}
	repository, _ := splitTag(*image.Ref)
	image.Ref = new(repository + ":" + t.tag)
	return nil
}

// splitTag returns the parts of a reference without its digest. The tag may be missing; the host may have a port.
func splitTag(ref string) (repository, tag string) {
	repository, _, _ = strings.Cut(ref, "@")
	if colon := strings.LastIndex(repository, ":"); colon > strings.LastIndex(repository, "/") {
		return repository[:colon], repository[colon+1:]
	}
	return repository, ""
}
