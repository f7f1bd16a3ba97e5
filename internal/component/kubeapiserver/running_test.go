package kubeapiserver

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/pkg/secrets"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

// TestRunning starts the real program with what was rendered, in each version: it knows all flags, reads all files, and lets anonymous clients ask
// for its health only.
func TestRunning(t *testing.T) {
	env.EachKubernetes(t, func(t *testing.T, version string, program func(string) string) {
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
				tc.values.Version = version
				testRunning(t, program("kube-apiserver"), tc.values, tc.want)
			})
		}
	})
}

func testRunning(t *testing.T, program string, v Values, want map[string]int) {
	dir, etcdURL, port := t.TempDir(), env.StartEtcd(t), strconv.Itoa(ports.Free(t, 1)[0])
	objects, err := Objects(v)
	if err != nil {
		t.Fatal(err)
	}
	replacer := strings.NewReplacer(
		dirConfig, dir+dirConfig, dirSecrets, dir+dirSecrets, dirAuditLog, dir+dirAuditLog, "--secure-port=443", "--secure-port="+port,
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
	log := env.StartProgram(t, program, args...)
	for path, status := range want {
		env.AwaitStatus(t, log, "https://127.0.0.1:"+port+path, status)
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
