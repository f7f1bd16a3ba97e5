package kubeapiserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/pkg/secrets"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestRunning starts the real program with what was rendered: it knows all flags, reads all files, and lets anonymous clients ask for
// its health only.
func TestRunning(t *testing.T) {
	etcd, kubeAPIServer := env.Program(t, "etcd", "etcd"), env.Program(t, "kubernetes", "kube-apiserver")
	for name, tc := range map[string]struct {
		values Values
		want   map[string]int
	}{
		"workerless": {workerless(), map[string]int{"/readyz": 200, "/livez?exclude=etcd": 200, "/version": 401, "/api": 401, "/metrics": 401}},
		// The Shoot's own configuration lets everybody ask for the version.
		"full": {full(), map[string]int{"/readyz": 200, "/livez": 200, "/version": 200, "/api": 401}},
		"IPv6": {ipv6(), map[string]int{"/readyz": 200}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var free []string
			for _, port := range ports.Free(t, 3) {
				free = append(free, strconv.Itoa(port))
			}
			etcdURL := "http://127.0.0.1:" + free[0]
			start(t, etcd, "--data-dir="+dir+"/etcd", "--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
				"--listen-peer-urls=http://127.0.0.1:"+free[1], "--initial-advertise-peer-urls=http://127.0.0.1:"+free[1],
				"--initial-cluster=default=http://127.0.0.1:"+free[1], "--unsafe-no-fsync", "--log-level=error")
			objects, err := Objects(tc.values)
			if err != nil {
				t.Fatal(err)
			}
			replacer := strings.NewReplacer(
				dirConfig, dir+dirConfig, dirSecrets, dir+dirSecrets, dirAuditLog, dir+dirAuditLog, "--secure-port=443", "--secure-port="+free[2],
				"https://etcd-main-client:2379", etcdURL, "https://etcd-events-client:2379", etcdURL,
			)
			pod := podOf(objects)
			writeFiles(t, dir, objects, pod, replacer)
			args := []string{"--bind-address=127.0.0.1"}
			for _, arg := range pod.Containers[0].Args {
				if !strings.HasPrefix(arg, "--bind-address=") {
					args = append(args, replacer.Replace(arg))
				}
			}
			log := start(t, kubeAPIServer, args...)
			for path, want := range tc.want {
				await(t, log, "https://127.0.0.1:"+free[2]+path, want)
			}
		})
	}
}

func podOf(objects []client.Object) *corev1.PodSpec {
	for _, object := range objects {
		if deployment, ok := object.(*appsv1.Deployment); ok {
			return &deployment.Spec.Template.Spec
		}
	}
	return nil
}

// writeFiles writes what the volumes of a pod have to where they are mounted, below a directory.
func writeFiles(t *testing.T, dir string, objects []client.Object, pod *corev1.PodSpec, replacer *strings.Replacer) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	others := map[string][]byte{
		secrets.DataKeyCertificate: certificate, secrets.DataKeyPrivateKey: key, secrets.DataKeyCertificateBundle: certificate,
		secrets.DataKeyRSAPrivateKey: signer, secrets.DataKeyPrivateKeyBundle: signer,
	}
	mounted := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounted[mount.Name] = filepath.Join(dir, mount.MountPath)
	}
	for _, volume := range pod.Volumes {
		data := others
		for _, object := range objects {
			switch o := object.(type) {
			case *corev1.ConfigMap:
				if volume.ConfigMap != nil && volume.ConfigMap.Name == o.Name {
					data = map[string][]byte{}
					for file, text := range o.Data {
						data[file] = []byte(text)
					}
				}
			case *corev1.Secret:
				if volume.Secret != nil && volume.Secret.SecretName == o.Name {
					data = o.Data
				}
			}
		}
		if err := os.MkdirAll(mounted[volume.Name], 0o700); err != nil {
			t.Fatal(err)
		}
		for file, content := range data {
			if err := os.WriteFile(filepath.Join(mounted[volume.Name], file), []byte(replacer.Replace(string(content))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// start runs a program until the test is over, and returns the file with what it says.
func start(t *testing.T, program string, args ...string) string {
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

// await asks until there is an answer with the wanted status.
func await(t *testing.T, log, url string, want int) {
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
