package landscape

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/util/wait"

	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/distribution"
)

// push pushes an image to the landscape's registry under its whole name, which machines pull it by. An image that the registry already has
// is not sent again.
func (l *Landscape) push(ctx context.Context, reference string, image v1.Image) error {
	target, err := l.pushTarget(reference)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	transport := l.pushTransport()
	defer transport.CloseIdleConnections()
	options := []remote.Option{remote.WithContext(ctx), remote.WithTransport(transport)}
	if have, err := remote.Head(target, options...); err == nil && have.Digest == digest {
		return nil
	}
	if err := remote.Write(target, image, options...); err != nil {
		return fmt.Errorf("push %s: %w", reference, err)
	}
	return nil
}

// pushChart pushes a chart to the landscape's registry, and returns the reference by which pods pull it. Unlike images, which containerd pulls through
// its mirrors, charts are pulled by gardener-operator and gardenlets themselves. So the registry in the reference is the address that they reach it
// at, which is private and thus needs no TLS for them. The digest makes what refers to the chart change with it.
func (u *upRun) pushChart(ctx context.Context, chart string) (string, error) {
	entry, err := u.images.Find("gardener", imagevector.Query{})
	if err != nil {
		return "", err
	}
	version, _, err := u.builds.Release()
	if err != nil {
		return "", err
	}
	archive, metadata, err := charts.Released(chart, charts.Release{Version: version, Repository: entry.Repository})
	if err != nil {
		return "", fmt.Errorf("chart %q: %w", chart, err)
	}
	artifact, err := distribution.NewChart(archive, metadata)
	if err != nil {
		return "", fmt.Errorf("chart %q: %w", chart, err)
	}
	target, err := u.pushTarget(path.Dir(entry.Repository) + "/charts/" + artifact.Name + ":" + artifact.Tag)
	if err != nil {
		return "", err
	}
	transport := u.pushTransport()
	defer transport.CloseIdleConnections()
	return pushArtifact(target, artifact.OCIArtifact, remote.WithContext(ctx), remote.WithTransport(transport))
}

// pushArtifact pushes an artifact unless the registry already has it, and returns its reference with digest.
func pushArtifact(target name.Reference, artifact *distribution.OCIArtifact, options ...remote.Option) (string, error) {
	if have, err := remote.Head(target, options...); err != nil || have.Digest != artifact.Digest() {
		if err := artifact.Push(target, options...); err != nil {
			return "", fmt.Errorf("push %s: %w", target, err)
		}
	}
	return target.String() + "@" + artifact.Digest().String(), nil
}

// pushTransport connects to the registry that can be pushed to, whatever the address is. It waits for one that was just started: a socket
// exists before it is served, and after its server has ended.
func (l *Landscape) pushTransport() *http.Transport {
	const interval, timeout = 50 * time.Millisecond, 10 * time.Second
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (connection net.Conn, err error) {
		_ = wait.PollUntilContextTimeout(ctx, interval, timeout, true, func(ctx context.Context) (bool, error) {
			connection, err = (&net.Dialer{}).DialContext(ctx, "unix", l.pushSocket())
			return err == nil, nil
		})
		if err != nil {
			return nil, fmt.Errorf("the registry does not run: %w", err)
		}
		return connection, nil
	}}
}

// pushTarget is the reference of an image in the landscape's registry.
func (l *Landscape) pushTarget(reference string) (name.Reference, error) {
	ref, err := name.ParseReference(reference)
	if err != nil {
		return nil, fmt.Errorf("image reference %q: %w", reference, err)
	}
	registry := ref.Context().RegistryStr()
	if registry == name.DefaultRegistry {
		registry = "docker.io" // This library calls it index.docker.io.
	}
	target := fmt.Sprintf("%s/%s/%s:%s", l.registryAddress(), registry, ref.Context().RepositoryStr(), ref.Identifier())
	if strings.Contains(ref.Identifier(), ":") {
		target = fmt.Sprintf("%s/%s/%s@%s", l.registryAddress(), registry, ref.Context().RepositoryStr(), ref.Identifier())
	}
	return name.ParseReference(target, name.Insecure)
}

func tagOf(reference string) string {
	_, tag, _ := strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
	return tag
}

// Push pushes an image to the registry of a running landscape, and returns its digest.
func (l *Landscape) Push(ctx context.Context, reference string, image v1.Image) (v1.Hash, error) {
	if _, err := l.Cluster(RuntimeCluster); err != nil {
		return v1.Hash{}, err
	}
	if err := l.push(ctx, reference, image); err != nil {
		return v1.Hash{}, err
	}
	return image.Digest()
}
