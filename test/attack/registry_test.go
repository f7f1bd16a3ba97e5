package attack

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// Every pod reaches the registry from which all machines pull. It must not replace or delete the images of others there; the landscape pushes
// to a socket of the host.
func TestPodDoesNotChangeImages(t *testing.T) {
	registry := env.Program(t, "registry", "registry")
	found, err := ports.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	address, socket := net.JoinHostPort("127.0.0.1", strconv.Itoa(found[0])), filepath.Join(dir, "push.sock")
	serve := func(name string, v landscape.RegistryValues) {
		v.Storage = filepath.Join(dir, "data")
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(landscape.RegistryConfig(v)), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), registry, "serve", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Wait() }) // the context of the test has ended
	}
	serve("pull.yml", landscape.RegistryValues{Net: "tcp", Address: address, ReadOnly: true})
	serve("push.yml", landscape.RegistryValues{Net: "unix", Address: socket})

	overSocket := remote.WithTransport(&http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}})
	image, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.ParseReference(address+"/registry.k8s.io/pause:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; {
		err := remote.Write(tag, image, overSocket)
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the host cannot push: %v", err)
		}
	}

	refused := func(what string, err error) {
		t.Helper()
		var answer *transport.Error
		if !errors.As(err, &answer) || answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v", what, err)
		}
	}
	other, err := random.Image(1024, 1)
	if err != nil {
		t.Fatal(err)
	}
	refused("a pod can replace an image", remote.Write(tag, other))
	byDigest, err := name.ParseReference(tag.Context().Name()+"@"+digest.String(), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	refused("a pod can delete an image", remote.Delete(byDigest))
	refused("a pod can delete a tag", remote.Delete(tag))
	refused("the host can delete an image", remote.Delete(byDigest, overSocket))
	if pulled, err := remote.Head(tag); err != nil || pulled.Digest != digest {
		t.Errorf("the image is %v: %v", pulled, err)
	}
}
