package env

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/mod/semver"
	"k8s.io/apimachinery/pkg/util/wait"

	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/test/ports"
)

// Program returns the path of a program that the distribution has built of a product. Without it the test is skipped.
func Program(t testing.TB, product, name string) string {
	t.Helper()
	path, err := program(product, name)
	switch {
	case err != nil && os.Getenv("CI") == "":
		t.Skipf("%v: %v", ErrNotBuilt, err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// Kubectl returns the path of kubectl. Without it, the test is skipped.
func Kubectl(t testing.TB) string {
	t.Helper()
	path, err := program("kubernetes", "kubectl")
	switch {
	case err != nil && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return path
}

// EachKubernetes runs a test with each minor version of Kubernetes that the distribution has a recipe for, in the standard or newest
// patch version, such as 1.35.4. program returns the path of a component. Minors that are built on demand are skipped while they are not built.
func EachKubernetes(t *testing.T, test func(t *testing.T, version string, program func(name string) string)) {
	t.Helper()
	d, err := open()
	if err != nil {
		t.Fatal(err)
	}
	versions, err := d.Versions("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i, version := range versions {
		minor := semver.MajorMinor(version)
		if seen[minor] {
			continue
		}
		seen[minor] = true
		t.Run(version, func(t *testing.T) {
			artifact, err := d.Artifact("kubernetes@" + version)
			var missing *distribution.NotBuiltError
			switch {
			case errors.As(err, &missing) && (i > 0 || os.Getenv("CI") == ""): // the first one is the standard version
				t.Skip(err)
			case err != nil:
				t.Fatal(err)
			}
			test(t, strings.TrimPrefix(version, "v"), func(name string) string { return filepath.Join(artifact.Dir, "bin", name) })
		})
	}
}

// program returns the path of a program.
func program(product, name string) (string, error) {
	d, err := open()
	if err != nil {
		return "", err
	}
	artifact, err := d.Artifact(product)
	if err != nil {
		return "", err
	}
	return filepath.Join(artifact.Dir, "bin", name), nil
}

// open returns the distribution of this checkout.
func open() (*distribution.Distribution, error) {
	root, err := distribution.FindRoot(".")
	if err != nil {
		return nil, err
	}
	return distribution.Open(root, "")
}

// StartEtcd runs an etcd until the test is over, and returns its URL. Without it, the test is skipped.
func StartEtcd(t testing.TB) string {
	t.Helper()
	free := ports.Free(t, 2)
	clients, peers := fmt.Sprintf("http://127.0.0.1:%d", free[0]), fmt.Sprintf("http://127.0.0.1:%d", free[1])
	StartProgram(t, Program(t, Etcd, Etcd), "--data-dir="+t.TempDir(), "--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers, "--unsafe-no-fsync", "--log-level=error")
	return clients
}

// StartProgram runs a program until the test is over, and returns the file with what it says.
func StartProgram(t testing.TB, program string, args ...string) string {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that crashes leaves nothing behind
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
	})
	return log.Name()
}

// AwaitStatus sends requests to a program that StartProgram has started until there is an answer with the wanted status.
func AwaitStatus(t testing.TB, log, url string, want int) {
	t.Helper()
	httpClient := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // a certificate of this test
	}}
	defer httpClient.CloseIdleConnections()
	last := "no answer"
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			said, _ := os.ReadFile(log)
			for _, sign := range []string{"Error: ", "command failed"} {
				if i := bytes.LastIndex(said, []byte(sign)); i >= 0 {
					return false, fmt.Errorf("it has ended: %s", said[i:])
				}
			}
			last = err.Error()
			return false, nil
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		last = fmt.Sprintf("%s: %.300s", response.Status, body)
		return response.StatusCode == want, err
	})
	if err != nil {
		t.Fatalf("GET %s: %v; want %d, last: %s", url, err, want, last)
	}
}
