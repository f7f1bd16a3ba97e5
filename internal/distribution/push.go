package distribution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/imagevector"
)

// Media types of what is pushed beside images.
const (
	mediaTypeSBOM       types.MediaType = "application/vnd.cyclonedx+json"
	mediaTypeProvenance types.MediaType = "application/vnd.in-toto+json"
	mediaTypeHelmConfig types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	mediaTypeHelmChart  types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

const (
	// gardenerImage is the name of the image with all processes of Gardener in the image vector.
	gardenerImage = "gardener"
	// baseProduct is what that image is built on.
	baseProduct = "base"
	// kubernetesProduct is the product whose versions are target versions in the image vector.
	kubernetesProduct = "kubernetes"
)

// Push says where to push what.
type Push struct {
	// Registry is the registry, and the path in it below which everything is: "registry.example.com/gardener". Images keep their
	// names below it, as in "registry.example.com/gardener/registry.k8s.io/pause:3.10.2", like in a mirror.
	Registry string
	// Insecure is for a registry without TLS. One at a loopback address needs no TLS.
	Insecure bool
	// Version is that of the charts, and the tag of the image with all processes of Gardener.
	Version string
	// Architectures are what to push for; none means that of this machine. An image that was built for several becomes an index of them.
	Architectures []string
	// Executable is the file with all processes of Gardener; none means what Release returns for each architecture.
	Executable string
	// Keychain has the credentials for the registry.
	Keychain authn.Keychain
	// Progress receives a line for everything that is pushed, or was in the registry already.
	Progress io.Writer
}

// Pushed is what is in the registry after a push.
type Pushed struct {
	// Images is an image vector that names the images in the registry by their digests. It has those that Gardener deploys.
	Images imagevector.Vector `json:"images"`
	// Charts are the charts by their digests.
	Charts imagevector.Vector `json:"charts"`
}

// Missing is a product that a landscape needs, but that was not pushed for an architecture, as it is not built.
type Missing struct {
	Product, Architecture string
	// Reason is why this machine cannot build it; "" if it can.
	Reason string
}

// Push pushes the images of products, with their SBOMs and a statement about how they were built, and all charts. Without references these
// are the products that are in the cache, in all versions; missing has the others that a landscape needs.
func (d *Distribution) Push(ctx context.Context, p Push, refs ...string) (pushed *Pushed, missing []Missing, err error) {
	to, err := newPusher(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	vector, err := imagevector.Default()
	if err != nil {
		return nil, nil, err
	}
	entry, err := vector.Find(gardenerImage, imagevector.Query{})
	if err != nil {
		return nil, nil, err
	}
	c := &collection{}
	if len(p.Architectures) == 0 {
		p.Architectures = []string{d.architecture}
	}
	// Sorted, so that an index has the same digest in whatever order they are given.
	for _, architecture := range slices.Compact(slices.Sorted(slices.Values(p.Architectures))) {
		of, err := d.For(architecture)
		if err != nil {
			return nil, nil, err
		}
		if err := of.collect(c, p, entry.Repository, refs); err != nil {
			return nil, nil, err
		}
	}
	digests := map[string]string{}
	for _, image := range c.images {
		digest, err := to.image(ctx, image)
		if err != nil {
			return nil, nil, err
		}
		if image.product != "" {
			digests[image.reference] = digest
		}
		// In the image vector, images that are released with Gardener have no tag, like those of Kubernetes, of which there are several.
		if repository := image.reference[:strings.LastIndex(image.reference, ":")]; image.product != kubernetesProduct && digests[repository] == "" {
			digests[repository] = digest
		}
	}
	pushed = &Pushed{}
	if pushed.Images, err = overwrite(vector, to.registry, c.versions, digests); err != nil {
		return nil, nil, err
	}
	for _, chart := range charts.Names() {
		archive, metadata, err := charts.Released(chart, charts.Release{Version: p.Version, Repository: to.registry + "/" + entry.Repository})
		if err != nil {
			return nil, nil, err
		}
		ref, err := to.chart(ctx, archive, metadata)
		if err != nil {
			return nil, nil, err
		}
		pushed.Charts = append(pushed.Charts, imagevector.Source{Name: chart, Ref: &ref, Version: &p.Version})
	}
	return pushed, c.missing, nil
}

// collection is what is pushed.
type collection struct {
	images   []*pushImage
	versions []string // of Kubernetes
	missing  []Missing
}

// pushImage is what a reference becomes in the registry: an image, or an index of those of several architectures.
type pushImage struct {
	reference string
	product   string // "" for the image with all processes of Gardener
	platforms []platformImage
}

type platformImage struct {
	Image
	architecture string
	statement    statement
}

// add adds an image, unless it was added before, as its product was named twice.
func (c *collection) add(reference, product string, image platformImage) {
	i := slices.IndexFunc(c.images, func(known *pushImage) bool { return known.reference == reference })
	if i < 0 {
		i = len(c.images)
		c.images = append(c.images, &pushImage{reference: reference, product: product})
	}
	if !slices.ContainsFunc(c.images[i].platforms, func(known platformImage) bool { return known.architecture == image.architecture }) {
		c.images[i].platforms = append(c.images[i].platforms, image)
	}
}

// collect adds the images for the architecture: that with all processes of Gardener, and those of products.
func (d *Distribution) collect(c *collection, p Push, repository string, refs []string) error {
	artifacts, missing, err := d.toPush(refs)
	if err != nil {
		return err
	}
	c.missing = append(c.missing, missing...)
	base, err := d.Artifact(baseProduct)
	if err != nil {
		return err
	}
	if p.Executable == "" {
		if _, p.Executable, err = d.Release(); err != nil {
			return err
		}
	}
	if err := d.checkExecutable(p.Executable); err != nil {
		return err
	}
	gardener, err := d.Wrap(filepath.Join(d.cache, ".push"+d.suffix(), gardenerImage), base, repository, p.Executable, GardenerLinks...)
	if err != nil {
		return err
	}
	statement, err := d.wrappedStatement(gardener, base, p)
	if err != nil {
		return err
	}
	c.add(repository+":"+p.Version, "", platformImage{gardener, d.architecture, statement})
	for _, a := range artifacts {
		images, err := a.Images()
		if err != nil {
			return err
		}
		for _, image := range images {
			statement, err := d.statement(image, a)
			if err != nil {
				return err
			}
			c.add(image.Reference, a.Product, platformImage{image, d.architecture, statement})
		}
		if a.Product == kubernetesProduct && !slices.Contains(c.versions, a.Version) {
			c.versions = append(c.versions, a.Version)
		}
	}
	return nil
}

// toPush returns the artifacts of references, or without any all that are built.
func (d *Distribution) toPush(refs []string) (artifacts []*Artifact, missing []Missing, err error) {
	for _, ref := range refs {
		v, err := d.resolve(ref)
		if err != nil {
			return nil, nil, err
		}
		if reason := d.nativeOnly(v.name); reason != "" {
			missing = append(missing, Missing{v.name, d.architecture, reason})
			continue
		}
		a, err := d.Artifact(ref)
		if err != nil {
			return nil, nil, err
		}
		artifacts = append(artifacts, a)
	}
	if len(refs) > 0 {
		return artifacts, missing, nil
	}
	needed := d.Default()
	for _, product := range d.All() {
		built, err := d.Built(product)
		if err != nil {
			return nil, nil, err
		}
		if len(built) == 0 && slices.Contains(needed, product) {
			missing = append(missing, Missing{Product: product, Architecture: d.architecture})
		}
		artifacts = append(artifacts, built...)
	}
	for _, product := range d.NativeOnly() {
		if recipe := d.products[product.Product].recipe; len(recipe.Images) > 0 && !recipe.Optional {
			missing = append(missing, Missing{product.Product, d.architecture, product.Reason})
		}
	}
	return artifacts, missing, nil
}

// overwrite returns the entries of an image vector that have been pushed, in the registry.
func overwrite(vector imagevector.Vector, registry string, versions []string, digests map[string]string) (imagevector.Vector, error) {
	pinned, err := imagevector.PinDigests(vector, versions, func(ref string) (string, error) { return digests[ref], nil })
	if err != nil {
		return nil, err
	}
	for i := range pinned {
		for _, reference := range []*string{pinned[i].Ref, pinned[i].Repository} {
			if reference != nil {
				*reference = registry + "/" + *reference
			}
		}
	}
	return pinned, nil
}

// Write writes what is in the registry as a file. It overwrites both images and charts: with it as imageVectorOverwrite and
// chartsImageVectorOverwrite of its chart, gardener-operator deploys what was pushed.
func (p *Pushed) Write(w io.Writer) error {
	data, err := yaml.Marshal(p)
	if err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// pusher pushes to a registry.
type pusher struct {
	registry string
	names    []name.Option
	options  []remote.Option
	progress io.Writer
}

func newPusher(ctx context.Context, p Push) (*pusher, error) {
	to := &pusher{registry: strings.TrimSuffix(p.Registry, "/"), progress: p.Progress}
	if p.Insecure {
		to.names = append(to.names, name.Insecure)
	}
	keychain := p.Keychain
	if keychain == nil {
		keychain = authn.DefaultKeychain
	}
	to.options = []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(keychain)}
	// A name without a dot or a port would be one in the registry of Docker.
	host, _, _ := strings.Cut(to.registry, "/")
	if !strings.ContainsAny(host, ".:") && host != "localhost" {
		return nil, fmt.Errorf("registry %q: it has to begin with a host, such as registry.example.com/gardener or localhost:5000", p.Registry)
	}
	if _, err := name.NewRepository(to.registry+"/charts", to.names...); err != nil {
		return nil, fmt.Errorf("registry %q: %w", p.Registry, err)
	}
	return to, nil
}

func (p *pusher) reference(ref string) (name.Reference, error) {
	reference, err := name.ParseReference(p.registry+"/"+ref, p.names...)
	if err != nil {
		return nil, fmt.Errorf("reference %s/%s: %w", p.registry, ref, err)
	}
	return reference, nil
}

// has says whether a reference is in the registry, with a digest.
func (p *pusher) has(reference name.Reference, digest v1.Hash) (bool, error) {
	found, err := remote.Head(reference, p.options...)
	var response *transport.Error
	if errors.As(err, &response) && response.StatusCode == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up %s: %w", reference, err)
	}
	return found.Digest == digest, nil
}

// put pushes what has a reference, unless it is in the registry.
func (p *pusher) put(reference name.Reference, digest v1.Hash, push func() error) error {
	present, err := p.has(reference, digest)
	if err != nil {
		return err
	}
	verb := "present"
	if !present {
		if err := push(); err != nil {
			return fmt.Errorf("push %s: %w", reference, err)
		}
		verb = "pushed "
	}
	text := reference.String()
	if _, byDigest := reference.(name.Digest); !byDigest {
		text += "@" + digest.String()
	}
	fmt.Fprintf(p.progress, "%s %s\n", verb, text)
	return nil
}

// image pushes an image, or an index of those of several architectures, and returns the digest.
func (p *pusher) image(ctx context.Context, image *pushImage) (string, error) {
	reference, err := p.reference(image.reference)
	if err != nil {
		return "", err
	}
	if len(image.platforms) == 1 {
		return image.platforms[0].Digest, p.platform(ctx, reference, image.platforms[0])
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, of := range image.platforms {
		if err := p.platform(ctx, reference.Context().Digest(of.Digest), of); err != nil {
			return "", err
		}
		loaded, err := of.Load()
		if err != nil {
			return "", err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: loaded, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: of.architecture}},
		})
	}
	digest, err := index.Digest()
	if err != nil {
		return "", err
	}
	return digest.String(), p.put(reference, digest, func() error { return remote.Put(reference, index, p.options...) })
}

// platform pushes an image, its SBOM and a statement about it, unless they are in the registry.
func (p *pusher) platform(ctx context.Context, reference name.Reference, image platformImage) error {
	loaded, err := image.Load()
	if err != nil {
		return err
	}
	digest, err := loaded.Digest()
	if err != nil {
		return err
	}
	if err := p.put(reference, digest, func() error { return remote.Write(reference, loaded, p.options...) }); err != nil {
		return err
	}
	size, err := loaded.Size()
	if err != nil {
		return err
	}
	subject := &v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size}
	sbom, err := os.ReadFile(image.SBOM())
	if err != nil {
		return fmt.Errorf("read SBOM of %s: %w", image.Reference, err)
	}
	provenance, err := json.Marshal(image.statement)
	if err != nil {
		return err
	}
	for _, attached := range []struct {
		what    string
		content []byte
		typ     types.MediaType
	}{{"SBOM", sbom, mediaTypeSBOM}, {"provenance", provenance, mediaTypeProvenance}} {
		artifact, err := newArtifact(attached.typ, []byte("{}"), attached.typ, attached.content, subject, nil)
		if err != nil {
			return err
		}
		to := reference.Context().Digest(artifact.digest.String())
		if present, err := p.has(to, artifact.digest); err != nil {
			return err
		} else if present {
			continue
		}
		if err := artifact.Push(to, p.options...); err != nil {
			return fmt.Errorf("push %s of %s: %w", attached.what, reference, err)
		}
		fmt.Fprintf(p.progress, "        with its %s %s\n", attached.what, artifact.digest)
	}
	return ctx.Err()
}

// chart pushes a chart, unless it is in the registry, and returns its reference with the digest.
func (p *pusher) chart(ctx context.Context, archive, metadata []byte) (string, error) {
	artifact, err := NewChart(archive, metadata)
	if err != nil {
		return "", err
	}
	reference, err := p.reference("charts/" + artifact.Name + ":" + artifact.Tag)
	if err != nil {
		return "", err
	}
	if err := p.put(reference, artifact.digest, func() error { return artifact.Push(reference, p.options...) }); err != nil {
		return "", err
	}
	return reference.String() + "@" + artifact.digest.String(), ctx.Err()
}

// Chart is a Helm chart as registries have it.
type Chart struct {
	*OCIArtifact
	// Name is the name of the chart, which ends its repository, and Tag its version as a tag.
	Name, Tag string
}

// NewChart returns a chart, given its archive and its Chart.yaml.
func NewChart(archive, metadata []byte) (*Chart, error) {
	config, err := yaml.YAMLToJSON(metadata)
	if err != nil {
		return nil, err
	}
	chart := struct{ Name, Version, Description string }{}
	if err := json.Unmarshal(config, &chart); err != nil {
		return nil, err
	}
	artifact, err := newArtifact(mediaTypeHelmConfig, config, mediaTypeHelmChart, archive, nil, map[string]string{
		"org.opencontainers.image.title": chart.Name, "org.opencontainers.image.version": chart.Version,
		"org.opencontainers.image.description": chart.Description,
	})
	// A tag has no plus sign; Helm replaces it in the same way.
	return &Chart{OCIArtifact: artifact, Name: chart.Name, Tag: strings.ReplaceAll(chart.Version, "+", "_")}, err
}

// OCIArtifact is what a registry has beside images: a manifest with a configuration and one layer.
type OCIArtifact struct {
	manifest []byte
	digest   v1.Hash
	blobs    []v1.Layer
}

// newArtifact returns an artifact, whose type is that of its configuration: this is how registries list referrers of a subject.
func newArtifact(
	configType types.MediaType, config []byte, layerType types.MediaType, content []byte, subject *v1.Descriptor, annotations map[string]string,
) (*OCIArtifact, error) {
	a := &OCIArtifact{blobs: []v1.Layer{static.NewLayer(config, configType), static.NewLayer(content, layerType)}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Subject: subject, Annotations: annotations}
	var parts []v1.Descriptor
	for _, blob := range a.blobs {
		digest, err := blob.Digest()
		if err != nil {
			return nil, err
		}
		size, err := blob.Size()
		if err != nil {
			return nil, err
		}
		mediaType, err := blob.MediaType()
		if err != nil {
			return nil, err
		}
		parts = append(parts, v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size})
	}
	manifest.Config, manifest.Layers = parts[0], parts[1:]
	var err error
	if a.manifest, err = json.Marshal(manifest); err != nil {
		return nil, err
	}
	a.digest, _, err = v1.SHA256(bytes.NewReader(a.manifest))
	return a, err
}

// RawManifest implements remote.Taggable.
func (a *OCIArtifact) RawManifest() ([]byte, error) { return a.manifest, nil }

// MediaType is that of the manifest, which registries store with it.
func (a *OCIArtifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// Digest is the digest of the manifest.
func (a *OCIArtifact) Digest() v1.Hash { return a.digest }

// Push pushes the artifact. In registries that cannot list referrers, it adds it to the tag with those of its subject.
func (a *OCIArtifact) Push(reference name.Reference, options ...remote.Option) error {
	for _, blob := range a.blobs {
		if err := remote.WriteLayer(reference.Context(), blob, options...); err != nil {
			return err
		}
	}
	return remote.Put(reference, a, options...)
}
