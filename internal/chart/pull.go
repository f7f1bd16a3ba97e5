package chart

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/destination"
)

const (
	// layerType is the media type of the layer with the archive.
	layerType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// maxArchive is the largest archive that is pulled, in bytes. Charts have some ten thousand.
	maxArchive = 16 << 20
	// pullTimeout is the end of a pull.
	pullTimeout = 2 * time.Minute
	// maxKept is how many archives are kept in memory: those of a few dozen extensions.
	maxKept = 64
	// caBundleKey is where a Secret has the CA certificates of a registry.
	caBundleKey = "bundle.crt"
)

// Puller pulls charts from registries, and keeps them by their digest.
type Puller struct {
	// Blocked returns why not to connect to an address, or "": for charts that users choose. It is for registries, where they redirect to, and the
	// servers of their tokens. Nil blocks none.
	Blocked func(address string) string

	mu   sync.Mutex
	kept map[pulled][]byte
}

// Access has the credentials for a registry.
type Access struct {
	// DockerConfig has the credentials, in the format of .dockerconfigjson. Empty for none.
	DockerConfig []byte
	// CABundle has the CA certificates of the registry, as PEM. Empty for those of the system.
	CABundle []byte
}

// Pull returns the archive of a chart.
func (p *Puller) Pull(ctx context.Context, repository *gardencorev1.OCIRepository, access Access) ([]byte, error) {
	reference, err := parse(repository)
	if err != nil {
		return nil, err
	}
	if digest, ok := reference.(name.Digest); ok {
		// What it names does not change, so the registry need not be available.
		if archive := p.find(digest, access); archive != nil {
			return archive, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	options, err := access.options(ctx, reference, p.Blocked)
	if err != nil {
		return nil, err
	}
	hash, err := lookUp(reference, options)
	if err != nil {
		return nil, fmt.Errorf("look up chart %q: %w", reference, err)
	}
	digest := reference.Context().Digest(hash.String())
	if archive := p.find(digest, access); archive != nil {
		return archive, nil
	}
	archive, err := pull(digest, options)
	if err != nil {
		return nil, fmt.Errorf("pull chart %q: %w", reference, err)
	}
	p.keep(digest, access, archive)
	return archive, nil
}

// pulled is an archive that was pulled, and with what access: other credentials may not allow it.
type pulled struct{ digest, access string }

func pulledWith(digest name.Digest, access Access) pulled {
	config, bundle := sha256.Sum256(access.DockerConfig), sha256.Sum256(access.CABundle)
	return pulled{digest.String(), string(config[:]) + string(bundle[:])}
}

// find returns an archive that is kept, or nil.
func (p *Puller) find(digest name.Digest, access Access) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept[pulledWith(digest, access)]
}

func (p *Puller) keep(digest name.Digest, access Access, archive []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil || len(p.kept) >= maxKept {
		p.kept = map[pulled][]byte{}
	}
	p.kept[pulledWith(digest, access)] = archive
}

// PullFor is Pull with the credentials that the repository refers to: Secrets of the namespace "garden".
func (p *Puller) PullFor(ctx context.Context, reader client.Reader, repository *gardencorev1.OCIRepository) ([]byte, error) {
	var access Access
	for _, secret := range []struct {
		ref  *corev1.LocalObjectReference
		key  string
		into *[]byte
	}{
		{repository.PullSecretRef, corev1.DockerConfigJsonKey, &access.DockerConfig}, {repository.CABundleSecretRef, caBundleKey, &access.CABundle},
	} {
		if secret.ref == nil {
			continue
		}
		found, key := &corev1.Secret{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: secret.ref.Name}
		if err := reader.Get(ctx, key, found); err != nil {
			return nil, fmt.Errorf("read Secret %q: %w", key, err)
		}
		if len(found.Data[secret.key]) == 0 {
			return nil, fmt.Errorf("the Secret %q has no key %q", key, secret.key)
		}
		*secret.into = found.Data[secret.key]
	}
	return p.Pull(ctx, repository, access)
}

// lookUp returns the digest of what a reference names.
func lookUp(reference name.Reference, options []remote.Option) (v1.Hash, error) {
	descriptor, err := remote.Head(reference, options...)
	if err == nil {
		return descriptor.Digest, nil
	}
	var answer *transport.Error
	if !errors.As(err, &answer) {
		return v1.Hash{}, err
	}
	// Some registries have no HEAD, and none can say in its answer what is wrong.
	manifest, err := remote.Get(reference, options...)
	if err != nil {
		return v1.Hash{}, err
	}
	return manifest.Digest, nil
}

func pull(reference name.Reference, options []remote.Option) ([]byte, error) {
	image, err := remote.Image(reference, options...)
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	for _, layer := range layers {
		mediaType, err := layer.MediaType()
		if err != nil {
			return nil, err
		}
		if mediaType != layerType {
			continue
		}
		reader, err := layer.Compressed()
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		archive, err := io.ReadAll(io.LimitReader(reader, maxArchive+1))
		if err == nil && len(archive) > maxArchive {
			err = fmt.Errorf("the archive has more than %d bytes", maxArchive)
		}
		return archive, err
	}
	return nil, errors.New("the artifact is no Helm chart")
}

// URL returns where a chart is, as messages say it. It is empty if the repository does not say it. A digest takes precedence over a tag.
func URL(repository *gardencorev1.OCIRepository) string {
	switch {
	case repository.Ref != nil:
		return *repository.Ref
	case repository.Repository == nil:
		return ""
	case repository.Digest != nil:
		return *repository.Repository + "@" + *repository.Digest
	case repository.Tag != nil:
		return *repository.Repository + ":" + *repository.Tag
	}
	return *repository.Repository
}

// parse returns the reference of a chart.
func parse(repository *gardencorev1.OCIRepository) (name.Reference, error) {
	full := URL(repository)
	if full == "" {
		return nil, errors.New("neither ref nor repository is set")
	}
	reference, err := name.ParseReference(strings.TrimPrefix(full, "oci://"))
	if err != nil {
		return nil, fmt.Errorf("reference %q: %w", full, err)
	}
	return reference, nil
}

// credentialsFor returns those of the credentials in a .dockerconfigjson that are for a repository. As for images of pods, a key may be a registry or the
// beginning of repositories, in which case the longest one counts, or a URL of their API.
func credentialsFor(repository name.Repository, auths map[string]authn.AuthConfig) (credentials authn.AuthConfig, ok bool) {
	longest := ""
	for _, key := range slices.Sorted(maps.Keys(auths)) {
		prefix := repositories(key)
		if strings.HasPrefix(repository.Name()+"/", prefix+"/") && len(prefix) > len(longest) {
			longest, credentials, ok = prefix, auths[key], true
		}
	}
	return credentials, ok
}

// repositories returns the beginning of the names of the repositories that a key of .dockerconfigjson is for.
func repositories(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	registry, path, _ := strings.Cut(strings.TrimSuffix(key, "/"), "/")
	if version, rest, _ := strings.Cut(path, "/"); version == "v1" || version == "v2" {
		path = rest
	}
	if registry == "docker.io" {
		registry = name.DefaultRegistry
	}
	return strings.TrimSuffix(registry+"/"+path, "/")
}

func (a Access) options(ctx context.Context, reference name.Reference, blocked func(string) string) ([]remote.Option, error) {
	options := []remote.Option{remote.WithContext(ctx)}
	if len(a.DockerConfig) > 0 {
		config := struct {
			Auths map[string]authn.AuthConfig `json:"auths"`
		}{}
		if err := json.Unmarshal(a.DockerConfig, &config); err != nil {
			return nil, errors.New("the pull secret does not have the format of .dockerconfigjson")
		}
		credentials, ok := credentialsFor(reference.Context(), config.Auths)
		if !ok {
			registry := reference.Context().RegistryStr()
			return nil, fmt.Errorf("the pull secret has no credentials for registry %q: create it with kubectl create secret docker-registry --docker-server=%s",
				registry, registry)
		}
		options = append(options, remote.WithAuth(authn.FromConfig(credentials)))
	}
	if len(a.CABundle) == 0 && blocked == nil {
		return options, nil
	}
	roundTripper := remote.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented to be one
	if len(a.CABundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(a.CABundle) {
			return nil, errors.New("the CA bundle has no certificates")
		}
		roundTripper.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	if blocked != nil {
		roundTripper.DialContext = destination.Dialer(blocked).DialContext
	}
	return append(options, remote.WithTransport(roundTripper)), nil
}
