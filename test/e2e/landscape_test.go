//go:build e2e

// Package e2e uses a landscape as a person would: through the command line, kubectl's protocols, and the addresses that
// Services get. It brings a landscape of its own up and takes it down again.
package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	serverImage = "registry.local.gardener.cloud/gardener/e2e-server:test"
	// patience is for one thing to happen on a machine that is busy with other things too.
	patience = 2 * time.Minute
)

func TestLandscape(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a landscape needs root")
	}
	l := newLandscape(t)
	before := observeHost(t, l.name)

	start := time.Now()
	l.run(t, "up")
	t.Logf("up took %s", time.Since(start).Round(time.Second))
	l.connect(t)

	t.Run("a second up changes nothing", func(t *testing.T) {
		uid := l.node(t, "runtime-0").UID
		start := time.Now()
		l.run(t, "up")
		t.Logf("it took %s", time.Since(start).Round(time.Second))
		if now := l.node(t, "runtime-0").UID; now != uid {
			t.Error("the node is another one")
		}
	})
	t.Run("status is healthy", func(t *testing.T) { t.Log("\n" + l.run(t, "status")) })
	t.Run("images push", func(t *testing.T) { l.run(t, "images", "push", serverImage, serverTar(t)) })

	t.Run("garden", func(t *testing.T) { testGarden(t, l) })
	t.Run("gateway", func(t *testing.T) { testGateway(t, l) })
	app := l.deploy(t, "app", func(d *appsv1.Deployment) {})
	t.Run("a load balancer address is answered by a pod", func(t *testing.T) {
		if got := app.get(t, "/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	t.Run("a volume outlives its pod", func(t *testing.T) {
		app.put(t, "/file", "precious")
		l.replacePods(t, "app")
		if got := app.get(t, "/file"); got != "precious" {
			t.Errorf("file holds %q", got)
		}
	})
	t.Run("names resolve inside", func(t *testing.T) {
		service := l.service(t, "app")
		for name, want := range map[string]string{
			"app.default.svc.cluster.local": "[" + service.Spec.ClusterIP + "]",
			"app":                           "[" + service.Spec.ClusterIP + "]",
			"registry.local.gardener.cloud": "[" + l.registry + "]",
		} {
			if got := app.get(t, "/resolve?name="+name); got != want {
				t.Errorf("%s is %s, want %s", name, got, want)
			}
		}
	})
	t.Run("a cluster IP is answered", func(t *testing.T) {
		if got := app.get(t, "/fetch?url=http://app.default.svc/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	t.Run("logs", func(t *testing.T) {
		app.put(t, "/file", "for the log")
		logs, err := l.clientset.CoreV1().Pods("default").GetLogs(l.pod(t, "app").Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(logs), `wrote "for the log"`) {
			t.Errorf("logs = %q, %v", logs, err)
		}
	})
	t.Run("exec", func(t *testing.T) {
		if got := l.exec(t, l.pod(t, "app").Name, "/server", "say", "hello"); got != "[hello]\n" {
			t.Errorf("output = %q", got)
		}
	})
	t.Run("port-forward", func(t *testing.T) {
		if got := l.portForward(t, l.pod(t, "app").Name, "/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	t.Run("a memory limit is enforced", func(t *testing.T) {
		greedy := l.deploy(t, "greedy", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		})
		greedy.ask(t, http.MethodGet, "/eat?mebibytes=200", "") //nolint:errcheck // it does not live to answer
		await(t, l, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			for _, pod := range pods {
				for _, status := range pod.Status.ContainerStatuses {
					if ended := status.LastTerminationState.Terminated; ended != nil && ended.Reason == "OOMKilled" {
						return nil
					}
				}
			}
			return fmt.Errorf("no container was killed for its memory")
		}, client.MatchingLabels{"app": "greedy"})
	})
	t.Run("metrics", func(t *testing.T) {
		data, err := l.clientset.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes/runtime-0").DoRaw(t.Context())
		if err != nil || !strings.Contains(string(data), `"memory"`) {
			t.Errorf("node metrics = %s, %v", data, err)
		}
	})
	t.Run("a second machine joins, works and leaves", func(t *testing.T) {
		l.run(t, "up", "--machines=2")
		l.deploy(t, "far", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "runtime-1"}
		})
		// From a pod of the first machine to one of the second, by a name.
		if got := app.get(t, "/fetch?url=http://far.default.svc/hostname"); !strings.HasPrefix(got, "far-") {
			t.Errorf("answered by %q", got)
		}
		l.run(t, "up", "--machines=1")
		nodes := &corev1.NodeList{}
		if err := l.client.List(t.Context(), nodes); err != nil || len(nodes.Items) != 1 {
			t.Errorf("%d nodes are left, %v", len(nodes.Items), err)
		}
	})
	t.Run("a machine that ended comes back", func(t *testing.T) {
		rebooted := time.Now().Truncate(time.Second)
		l.cli(t, "shell", "runtime-0", "--", "systemctl", "reboot") //nolint:errcheck // the connection may end first
		l.run(t, "up")
		await(t, l, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			for _, pod := range pods {
				if running := pod.Status.ContainerStatuses[0].State.Running; running == nil || running.StartedAt.Time.Before(rebooted) {
					return fmt.Errorf("pod %q has not been started again", pod.Name)
				}
				return kube.PodReady(pod)
			}
			return fmt.Errorf("there is no pod")
		}, client.MatchingLabels{"app": "app"})
		if got := app.get(t, "/file"); got != "for the log" {
			t.Errorf("file holds %q", got)
		}
	})

	l.run(t, "down", "--yes")
	t.Run("nothing is left behind", func(t *testing.T) {
		if diff := cmp.Diff(before, observeHost(t, l.name)); diff != "" {
			t.Errorf("the host is not as before (-before +after):\n%s", diff)
		}
		if exists(filepath.Join(l.dir, l.name)) {
			t.Errorf("%s is left", filepath.Join(l.dir, l.name))
		}
	})
	t.Run("a second down does nothing", func(t *testing.T) {
		if out := l.run(t, "down", "--yes"); !strings.Contains(out, "There is no landscape") {
			t.Errorf("output = %q", out)
		}
	})
}

// landscape is a landscape under test, and the way to talk to its runtime cluster.
type landscape struct {
	binary, name, dir, registry string

	config    *rest.Config
	client    client.WithWatch
	clientset *kubernetes.Clientset
}

func newLandscape(t *testing.T) *landscape {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &landscape{
		binary: filepath.Join(root, "bin", "landscape"), name: fmt.Sprintf("e2e-%d", os.Getpid()), dir: filepath.Join(root, ".landscape", "e2e"),
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.keepArtifacts(t, filepath.Join(root, ".artifacts", l.name))
		}
		// It is gone already unless the test failed.
		if out, err := exec.Command(l.binary, "down", "--yes", "--name", l.name, "--dir", l.dir).CombinedOutput(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
	})
	return l
}

// cli runs the command line and returns what it wrote.
func (l *landscape) cli(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), l.binary, append([]string{"--name", l.name, "--dir", l.dir}, args...)...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// run is cli for what has to succeed.
func (l *landscape) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.cli(t, args...)
	if err != nil {
		t.Fatalf("landscape %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (l *landscape) connect(t *testing.T) {
	t.Helper()
	var err error
	if l.config, err = clientcmd.BuildConfigFromFlags("", strings.TrimSpace(l.run(t, "kubeconfig"))); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme), gatewayv1.Install(scheme)); err != nil {
		t.Fatal(err)
	}
	if l.client, err = client.NewWithWatch(l.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if l.clientset, err = kubernetes.NewForConfig(l.config); err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(l.config.Host, "https://"), ":")
	l.registry = host[:strings.LastIndex(host, ".")] + ".1" // The gateway of the machines' network.
}

// keepArtifacts keeps what explains a failure.
func (l *landscape) keepArtifacts(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
		return
	}
	save := func(name, binary string, args ...string) {
		out, _ := exec.Command(binary, args...).CombinedOutput() //nolint:errcheck // the output says it
		if err := os.WriteFile(filepath.Join(dir, name), out, 0o644); err != nil {
			t.Error(err)
		}
	}
	common := []string{"--name", l.name, "--dir", l.dir}
	save("status.txt", l.binary, append(common, "status")...)
	save("journal.txt", l.binary, append(common, "logs", "runtime-0", "-n", "2000")...)
	for _, service := range []string{"registry", "resolver", "containerd"} {
		save(service+".log", l.binary, append(common, "logs", service, "-n", "500")...)
	}
	if l.clientset != nil {
		events, err := l.clientset.CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
		if err == nil {
			var text strings.Builder
			for _, event := range events.Items {
				fmt.Fprintf(&text, "%s %s %s/%s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.Type, event.InvolvedObject.Namespace, event.InvolvedObject.Name, event.Reason, event.Message)
			}
			if err := os.WriteFile(filepath.Join(dir, "events.txt"), []byte(text.String()), 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("events, logs and status are in %s", dir)
}

// app is a Deployment of the test's server with a volume, and a Service of type LoadBalancer in front of it.
type app struct{ address string }

func (l *landscape) deploy(t *testing.T, name string, change func(*appsv1.Deployment)) app {
	t.Helper()
	labels := map[string]string{"app": name}
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}},
	}}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To[int64](1),
				SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](1000), FSGroup: ptr.To[int64](1000)},
				Containers: []corev1.Container{{
					Name: "server", Image: serverImage,
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt(8080)},
					}},
					VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
				}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
				}}},
			},
		},
	}}
	change(deployment)
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
	}}
	if err := kube.Apply(t.Context(), l.client, "e2e", claim, deployment, service); err != nil {
		t.Fatal(err)
	}
	await(t, l, &appsv1.DeploymentList{}, func(deployments []*appsv1.Deployment) error {
		for _, d := range deployments {
			return kube.DeploymentHealthy(d)
		}
		return fmt.Errorf("there is none")
	}, client.MatchingFields{"metadata.name": name})
	var address string
	await(t, l, &corev1.ServiceList{}, func(services []*corev1.Service) error {
		for _, s := range services {
			if len(s.Status.LoadBalancer.Ingress) > 0 {
				address = s.Status.LoadBalancer.Ingress[0].IP
				return nil
			}
		}
		return fmt.Errorf("the Service has no address")
	}, client.MatchingFields{"metadata.name": name})
	return app{address: address}
}

func (a app) ask(t *testing.T, method, path, body string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+a.address+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Close = true // The next request may be for another pod.
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	return string(data), err
}

// get asks until there is an answer: kube-proxy sends traffic to a pod a moment after it is ready, and nothing tells when.
func (a app) get(t *testing.T, path string) string {
	t.Helper()
	return a.eventually(t, http.MethodGet, path, "")
}

func (a app) put(t *testing.T, path, body string) {
	t.Helper()
	a.eventually(t, http.MethodPut, path, body)
}

func (a app) eventually(t *testing.T, method, path, body string) (got string) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		got, last = a.ask(t, method, path, body)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s %s: %v", method, path, last)
	}
	return got
}

// await is kube.Await in the default namespace unless the options name another, with patience.
func await[T client.Object](t *testing.T, l *landscape, list client.ObjectList, check func([]T) error, options ...client.ListOption) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("not so after %s", patience))
	defer cancel()
	if err := kube.Await(ctx, l.client, list, check, nil, append([]client.ListOption{client.InNamespace("default")}, options...)...); err != nil {
		t.Fatal(err)
	}
}

func (l *landscape) pod(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := l.client.List(t.Context(), pods, client.InNamespace("default"), client.MatchingLabels{"app": app}); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%q has %d pods, %v", app, len(pods.Items), err)
	}
	return &pods.Items[0]
}

func (l *landscape) node(t *testing.T, name string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := l.client.Get(t.Context(), client.ObjectKey{Name: name}, node); err != nil {
		t.Fatal(err)
	}
	return node
}

func (l *landscape) service(t *testing.T, name string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	if err := l.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, service); err != nil {
		t.Fatal(err)
	}
	return service
}

// replacePods deletes the pod of an app and waits for another one to be ready.
func (l *landscape) replacePods(t *testing.T, app string) {
	t.Helper()
	old := l.pod(t, app)
	if err := l.client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	await(t, l, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		if len(pods) != 1 || pods[0].UID == old.UID {
			return fmt.Errorf("there are %d pods, and not one new one", len(pods))
		}
		return kube.PodReady(pods[0])
	}, client.MatchingLabels{"app": app})
}

func (l *landscape) exec(t *testing.T, pod string, command ...string) string {
	t.Helper()
	request := l.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(l.config, http.MethodGet, request.URL().String())
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut bytes.Buffer // both are written at once
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut}); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errOut.String())
	}
	return out.String()
}

func (l *landscape) portForward(t *testing.T, pod, path string) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(l.config)
	if err != nil {
		t.Fatal(err)
	}
	url := l.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace("default").Name(pod).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	forwarder, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url),
		[]string{"127.0.0.1"}, []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		t.Fatal(err)
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	return app{address: fmt.Sprintf("127.0.0.1:%d", ports[0].Local)}.get(t, path)
}

// serverTar builds the test's server and an image of it, as a file that "docker save" could have written.
func serverTar(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "server")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", binary, "./server")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	var files bytes.Buffer
	writer := tar.NewWriter(&files)
	if err := writer.WriteHeader(&tar.Header{Name: "server", Mode: 0o755, Size: int64(len(content))}); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Config.Entrypoint = "linux", "amd64", []string{"/server"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(serverImage)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "server.tar")
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		t.Fatal(err)
	}
	return path
}
