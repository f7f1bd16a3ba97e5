//go:build e2e

// Package e2e uses a landscape as a user would: through the command line, kubectl's protocols, and the addresses of
// Services. It brings up a landscape of its own and takes it down again.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
	product "gardener.cloud/gardener/landscape"
	"gardener.cloud/gardener/test/e2e/serverimage"
	"gardener.cloud/gardener/test/env"
)

const (
	// timeout is for one event on a busy machine.
	timeout = 6 * time.Minute
	// cleanupTime is for artifacts and "down". It is reserved at the end of the timeout of go test, which then ends the process at once.
	cleanupTime = 5 * time.Minute
)

// interrupted ends with the first signal: the tests stop waiting, and clean up.
var interrupted = context.Background()

func TestMain(m *testing.M) {
	if err := product.BypassProxy(os.Getenv, os.Setenv); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var stop context.CancelFunc
	interrupted, stop = signal.NotifyContext(interrupted, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(interrupted, stop) // the second signal ends the process at once
	code := m.Run()
	stop()
	os.Exit(code)
}

// working is the context for the work of a test. It ends early enough for the test to clean up.
func working(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := context.AfterFunc(interrupted, func() { cancel(errors.New("interrupted")) })
	t.Cleanup(func() { stop(); cancel(nil) })
	if deadline, ok := t.Deadline(); ok {
		limited, free := context.WithDeadlineCause(ctx, deadline.Add(-cleanupTime), errors.New("timeout of all tests, see -timeout"))
		t.Cleanup(free)
		return limited
	}
	return ctx
}

func TestLandscape(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a landscape needs root")
	}
	l := newLandscape(t)
	before := observeHost(t, l.name)

	start := time.Now()
	l.run(t, "up", "--without-shoot")
	t.Logf("up took %s without the shoot", time.Since(start).Round(time.Second))
	l.connect(t)
	l.basic(t, "images push", func(t *testing.T) { l.run(t, "images", "push", serverimage.Reference, serverTar(t)) })

	l.timed(t, "a shoot without nodes", func(t *testing.T) { testWorkerless(t, l) })
	l.timed(t, "a hibernated shoot", func(t *testing.T) { testHibernated(t, l) })
	l.timed(t, "a shoot with a node", func(t *testing.T) { testShoot(t, l) })
	l.timed(t, "a shoot on a server", func(t *testing.T) { testHosts(t, l) })
	l.timed(t, "garden", func(t *testing.T) { testGarden(t, l) })
	l.timed(t, "gateway", func(t *testing.T) { testGateway(t, l) })
	app := l.deploy(t, "app", func(d *appsv1.Deployment) {})
	l.basic(t, "a load balancer address is answered by a pod", func(t *testing.T) {
		if got := app.get(t, "/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "a volume outlives its pod", func(t *testing.T) {
		testVolume(t, l.cluster, app)
	})
	l.timed(t, "names resolve inside", func(t *testing.T) {
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
	l.timed(t, "a cluster IP is answered", func(t *testing.T) {
		if got := app.get(t, "/fetch?url=http://app.default.svc/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "logs", func(t *testing.T) {
		app.put(t, "/file", "for the log")
		logs, err := l.clientset.CoreV1().Pods("default").GetLogs(l.pod(t, "app").Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		if err != nil || !strings.Contains(string(logs), `wrote "for the log"`) {
			t.Errorf("logs = %q, %v", logs, err)
		}
	})
	l.timed(t, "exec", func(t *testing.T) {
		if got := l.exec(t, l.pod(t, "app").Name, "/server", "say", "hello"); got != "[hello]\n" {
			t.Errorf("output = %q", got)
		}
	})
	l.timed(t, "port-forward", func(t *testing.T) {
		if got := l.portForward(t, l.pod(t, "app").Name, "/hostname"); !strings.HasPrefix(got, "app-") {
			t.Errorf("answered by %q", got)
		}
	})
	l.timed(t, "a memory limit is enforced", func(t *testing.T) {
		greedy := l.deploy(t, "greedy", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
		})
		greedy.get(t, "/hostname")                              // from now on it is reached
		greedy.ask(t, http.MethodGet, "/eat?mebibytes=200", "") //nolint:errcheck // it does not live to answer
		await(t, l.client, func(pods []*corev1.Pod) error {
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
	l.timed(t, "metrics", func(t *testing.T) {
		// A node that does not answer in time has none until it is asked again.
		eventually(t, func(ctx context.Context) error {
			data, err := l.clientset.RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes/runtime-0").DoRaw(ctx)
			if err == nil && !strings.Contains(string(data), `"memory"`) {
				err = fmt.Errorf("node metrics = %s", data)
			}
			return err
		})
	})
	l.timed(t, "a second machine joins, works and leaves", func(t *testing.T) {
		l.run(t, "up", "--machines=2", "--without-shoot")
		l.deploy(t, "far", func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "runtime-1"}
		})
		// From a pod of the first machine to one of the second, by the name of its Service.
		if got := app.get(t, "/fetch?url=http://far.default.svc/hostname"); !strings.HasPrefix(got, "far-") {
			t.Errorf("answered by %q", got)
		}
		// Nothing else may wait for the machine.
		if err := l.client.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "far"}}); err != nil {
			t.Error(err)
		}
		l.run(t, "up", "--machines=1", "--without-shoot")
		nodes := &corev1.NodeList{}
		if err := l.client.List(t.Context(), nodes); err != nil || len(nodes.Items) != 1 {
			t.Errorf("%d nodes are left, %v", len(nodes.Items), err)
		}
	})
	l.timed(t, "two seeds", func(t *testing.T) { testSeeds(t, l) })
	l.timed(t, "gardener-operator", func(t *testing.T) { testOperator(t, l) })
	// The shoot has a machine by the time the landscape is taken down.
	last := sample(t, example.Shoot)
	last.Spec.SeedName = new("local")
	l.audited(t, last)
	l.basic(t, "a machine that ended is started again", func(t *testing.T) {
		rebooted := time.Now().Truncate(time.Second)
		l.cli(t, "shell", "runtime-0", "--", "systemctl", "reboot") //nolint:errcheck // the connection may end first
		l.run(t, "up", "--without-shoot")
		await(t, l.client, func(pods []*corev1.Pod) error {
			reason := fmt.Errorf("there is no pod")
			for _, pod := range pods {
				statuses := pod.Status.ContainerStatuses // a new pod has none yet
				if len(statuses) == 0 || statuses[0].State.Running == nil || statuses[0].State.Running.StartedAt.Time.Before(rebooted) {
					reason = fmt.Errorf("pod %q has not been started again", pod.Name)
				} else if reason = kube.PodReady(pod); reason == nil {
					return nil
				}
			}
			return reason
		}, client.MatchingLabels{"app": "app"})
		if got := app.get(t, "/file"); got != "for the log" {
			t.Errorf("file holds %q", got)
		}
	})

	await(t, l.client, func(pods []*corev1.Pod) error {
		if len(pods) == 0 {
			return fmt.Errorf("the shoot has no machine yet")
		}
		return kube.PodReady(pods[0])
	}, client.InNamespace("infra-shoot--local--local"), client.MatchingLabels{"app": "machine"})
	l.timed(t, "every right is used or has a reason, and nothing is refused", func(t *testing.T) { testRights(t, l, product.SampleShoot) })
	l.keepArtifacts(t) // for failures until now, as they are removed with the landscape
	start = time.Now()
	l.run(t, "down", "--yes")
	t.Logf("down took %s", time.Since(start).Round(100*time.Millisecond))
	l.timed(t, "nothing is left behind", func(t *testing.T) {
		l.expectHost(t, before, "the host is not as before")
		if exists(filepath.Join(l.dir, l.name)) {
			t.Errorf("%s is left", filepath.Join(l.dir, l.name))
		}
	})
	l.timed(t, "a second down does nothing", func(t *testing.T) {
		if out := l.run(t, "down", "--yes"); !strings.Contains(out, "There is no landscape") {
			t.Errorf("output = %q", out)
		}
	})
}

// landscape is a landscape under test, with clients of its runtime cluster, which is its first seed.
type landscape struct {
	binary, name, dir, registry string
	// artifacts is the directory for logs and objects of failures. It is empty if they are not kept.
	artifacts string
	// kept are the names of the parts whose artifacts were kept.
	kept []string

	cluster
	// garden is the virtual cluster that serves the garden API.
	garden cluster
}

// cluster has clients of a cluster: the runtime cluster, the virtual garden, or a shoot.
type cluster struct {
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
	l.artifacts = filepath.Join(root, ".artifacts", l.name)
	lock, err := acquire(l.lockFile())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.keepArtifacts(t)
		// It is removed already unless the test failed.
		if out, err := l.down(); err != nil {
			t.Errorf("down: %v\n%s", err, out)
		}
		release(lock)
	})
	return l
}

// down takes the landscape down, also after the test's timeout. It has a timeout of its own.
func (l *landscape) down() ([]byte, error) {
	return exec.Command(l.binary, "down", "--yes", "--name", l.name, "--dir", l.dir).CombinedOutput()
}

// lockFile is locked while the landscape's test runs.
func (l *landscape) lockFile() string {
	return filepath.Join(l.dir, "lock-"+l.name)
}

// acquire locks a file until it is released or the process ends.
func acquire(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return file, nil
}

// release unlocks a file, and leaves no empty directory behind.
func release(lock *os.File) {
	_ = os.Remove(lock.Name())
	_ = lock.Close()
	_ = os.Remove(filepath.Dir(lock.Name()))
}

// cli runs the command and returns its output.
func (l *landscape) cli(t *testing.T, args ...string) (string, error) {
	t.Helper()
	ctx := working(t)
	out, err := exec.CommandContext(ctx, l.binary, append([]string{"--name", l.name, "--dir", l.dir}, args...)...).CombinedOutput()
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return string(out), err
}

// run is cli for commands that have to succeed.
func (l *landscape) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := l.cli(t, args...)
	if err != nil {
		t.Fatalf("landscape %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// awaitStatus waits until the status is healthy. A pod that is being deleted may not be ready for a moment after "up".
func (l *landscape) awaitStatus(t *testing.T) {
	t.Helper()
	var out string
	eventually(t, func(context.Context) (err error) {
		if out, err = l.cli(t, "status"); err != nil { //nolint:contextcheck // it ends in time by itself
			err = fmt.Errorf("landscape status: %w\n%s", err, out)
		}
		return err
	})
	t.Log("\n" + out)
}

func (l *landscape) connect(t *testing.T) {
	t.Helper()
	l.cluster = connect(t, strings.TrimSpace(l.run(t, "kubeconfig", product.RuntimeCluster)))
	l.connectGarden(t)
	host, _, _ := strings.Cut(strings.TrimPrefix(l.config.Host, "https://"), ":")
	l.registry = host[:strings.LastIndex(host, ".")] + ".1" // The gateway of the machines' network.
}

// connectGarden reads the kubeconfig of the garden, which the rotation of its credentials changes.
func (l *landscape) connectGarden(t *testing.T) {
	t.Helper()
	l.garden = connect(t, strings.TrimSpace(l.run(t, "kubeconfig")))
}

// connect reads a kubeconfig.
func connect(t *testing.T, file string) (c cluster) {
	t.Helper()
	var err error
	if c.config, err = clientcmd.BuildConfigFromFlags("", file); err != nil {
		t.Fatal(err)
	}
	c.config.QPS, c.config.Burst = -1, -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), resourcesv1alpha1.AddToScheme(scheme), machinev1alpha1.AddToScheme(scheme), druidv1alpha1.AddToScheme(scheme), gatewayv1.Install(scheme), operatorv1alpha1.AddToScheme(scheme), hostsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	if c.client, err = client.NewWithWatch(c.config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if c.clientset, err = kubernetes.NewForConfig(c.config); err != nil {
		t.Fatal(err)
	}
	return c
}

// maxArtifacts is for how many failed parts of a test artifacts are kept.
const maxArtifacts = 3

// keepArtifacts keeps logs and objects if a part of a test failed.
func (l *landscape) keepArtifacts(t *testing.T) {
	t.Helper()
	partKept := slices.ContainsFunc(l.kept, func(part string) bool { return strings.HasPrefix(part, t.Name()+"/") })
	if !t.Failed() || l.artifacts == "" || partKept || len(l.kept) == maxArtifacts {
		return
	}
	l.kept = append(l.kept, t.Name())
	dir := filepath.Join(l.artifacts, strconv.Itoa(len(l.kept)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Error(err)
		return
	}
	save := func(name, binary string, args ...string) {
		out, _ := exec.Command(binary, args...).CombinedOutput()
		if err := os.WriteFile(filepath.Join(dir, name), out, 0o644); err != nil {
			t.Error(err)
		}
	}
	common := []string{"--name", l.name, "--dir", l.dir}
	save("status.txt", l.binary, append(common, "status")...)
	save("journal.txt", l.binary, append(common, "logs", "runtime-0", "-n", "2000")...)
	save("journal-second.txt", l.binary, append(common, "logs", secondSeed+"-0", "-n", "2000")...)
	for _, service := range []string{"registry", "registry-push", "resolver", "containerd"} {
		save(service+".log", l.binary, append(common, "logs", service, "-n", "500")...)
	}
	if l.garden.clientset != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		l.keepEvents(ctx, t, dir)
		l.keepShoots(ctx, t, dir)
	}
	t.Logf("events, logs and status are in %s", dir)
}

func keep(t *testing.T, dir, name string, content []byte) {
	if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
		t.Error(err)
	}
}

func (l *landscape) keepEvents(ctx context.Context, t *testing.T, dir string) {
	events, err := l.clientset.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Logf("events are lost: %v", err)
		return
	}
	var text strings.Builder
	for _, event := range events.Items {
		fmt.Fprintf(&text, "%s %s %s/%s %s: %s\n", event.LastTimestamp.Format(time.TimeOnly), event.Type, event.InvolvedObject.Namespace, event.InvolvedObject.Name, event.Reason, event.Message)
	}
	keep(t, dir, "events.txt", []byte(text.String()))
}

// keepShoots keeps the shoots, and the logs of their control planes, of the machines' consoles, and of the garden.
func (l *landscape) keepShoots(ctx context.Context, t *testing.T, dir string) {
	shoots := &corev1beta1.ShootList{}
	if err := l.garden.client.List(ctx, shoots); err != nil {
		t.Logf("shoots are lost: %v", err)
	}
	for _, shoot := range shoots.Items {
		if text, err := yaml.Marshal(shoot); err == nil {
			keep(t, dir, "shoot-"+shoot.Namespace+"-"+shoot.Name+".yaml", text)
		}
	}
	l.keepLogs(ctx, t, dir)
}

// keepLogs keeps the logs of the runtime cluster.
func (l *landscape) keepLogs(ctx context.Context, t *testing.T, dir string) {
	pods := &corev1.PodList{}
	if err := l.client.List(ctx, pods); err != nil {
		t.Logf("logs are lost: %v", err)
	}
	namespaces := []string{"garden", metav1.NamespaceSystem, "gateway"}
	for _, pod := range pods.Items {
		if !strings.HasPrefix(pod.Namespace, "shoot--") && !strings.HasPrefix(pod.Namespace, "extension-") && !slices.Contains(namespaces, pod.Namespace) {
			continue
		}
		for _, container := range pod.Spec.Containers {
			logs, err := l.clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name, TailLines: new(int64(1000))}).DoRaw(ctx)
			if err != nil {
				logs = []byte(err.Error())
			}
			keep(t, dir, pod.Namespace+"-"+pod.Name+"-"+container.Name+".log", logs)
		}
		if pod.Labels["app"] == "machine" {
			journal, err := l.cluster.execIn(ctx, pod.Namespace, pod.Name, "journalctl", "--no-pager", "--lines=3000")
			if err != nil {
				journal += err.Error()
			}
			keep(t, dir, pod.Name+"-journal.txt", []byte(journal))
		}
	}
}

// app is a Deployment of the test's server with a volume, and a Service of type LoadBalancer in front of it.
type app struct{ name, address string }

func (c cluster) deploy(t *testing.T, name string, change func(*appsv1.Deployment)) app {
	t.Helper()
	labels := map[string]string{"app": name}
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Mi")}},
	}}
	deployment := serverDeployment(name)
	spec := &deployment.Spec.Template.Spec
	spec.SecurityContext.FSGroup = new(int64(1000))
	spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}}
	change(deployment)
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Selector: labels,
		Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt(8080)}},
	}}
	if err := kube.Apply(t.Context(), c.client, "e2e", claim, deployment, service); err != nil {
		t.Fatal(err)
	}
	c.awaitDeployment(t, name)
	var address string
	await(t, c.client, func(services []*corev1.Service) error {
		for _, s := range services {
			if len(s.Status.LoadBalancer.Ingress) > 0 {
				address = s.Status.LoadBalancer.Ingress[0].IP
				return nil
			}
		}
		return fmt.Errorf("the Service has no address")
	}, client.MatchingFields{"metadata.name": name})
	return app{name: name, address: address}
}

func (c cluster) awaitDeployment(t *testing.T, name string) {
	t.Helper()
	await(t, c.client, func(deployments []*appsv1.Deployment) error {
		for _, d := range deployments {
			return kube.DeploymentComplete(d)
		}
		return fmt.Errorf("there is none")
	}, client.MatchingFields{"metadata.name": name})
}

// serverDeployment is a Deployment of the test server.
func serverDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(1)),
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(1)),
				SecurityContext:               &corev1.PodSecurityContext{RunAsNonRoot: new(true), RunAsUser: new(int64(1000))},
				Containers: []corev1.Container{{
					Name: "server", Image: serverimage.Reference,
					ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
						HTTPGet: &corev1.HTTPGetAction{Path: "/hostname", Port: intstr.FromInt(8080)},
					}},
				}},
			},
		},
	}}
}

func (a app) ask(t *testing.T, method, path, body string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(working(t), 30*time.Second)
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
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, data)
	}
	return string(data), err
}

// get retries until there is a response: kube-proxy routes traffic to a pod a moment after it is ready, which cannot be watched.
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
	waiting := newWaiting(t)
	if err := wait.PollUntilContextTimeout(working(t), 100*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		got, last = a.ask(t, method, path, body) //nolint:contextcheck // it ends with the test's time
		waiting.note(last)
		return last == nil, nil
	}); err != nil {
		t.Fatalf("%s %s: %v", method, path, last)
	}
	return got
}

// await is env.AwaitList in the default namespace unless the options name another, with the timeout of the landscape.
func await[T client.Object](t *testing.T, c client.WithWatch, check func([]T) error, options ...client.ListOption) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(working(t), timeout, fmt.Errorf("not done after %s", timeout))
	defer cancel()
	env.AwaitListUntil(ctx, t, c, check, append([]client.ListOption{client.InNamespace("default")}, options...)...)
}

func (c cluster) pod(t *testing.T, app string) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	if err := c.client.List(t.Context(), pods, client.InNamespace("default"), client.MatchingLabels{"app": app}); err != nil || len(pods.Items) != 1 {
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

// testVolume replaces the pod of an app, whose file stays.
func testVolume(t *testing.T, c cluster, app app) {
	app.put(t, "/file", "precious")
	c.replacePods(t, app.name)
	if got := app.get(t, "/file"); got != "precious" {
		t.Errorf("file holds %q", got)
	}
}

// replacePods deletes the pod of an app and waits for another one to be ready.
func (c cluster) replacePods(t *testing.T, app string) {
	t.Helper()
	old := c.pod(t, app)
	if err := c.client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	await(t, c.client, func(pods []*corev1.Pod) error {
		if len(pods) != 1 || pods[0].UID == old.UID {
			return fmt.Errorf("there are %d pods, and not one new one", len(pods))
		}
		return kube.PodReady(pods[0])
	}, client.MatchingLabels{"app": app})
}

func (c cluster) exec(t *testing.T, pod string, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(working(t), timeout)
	defer cancel()
	out, err := c.execIn(ctx, "default", pod, command...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

func (c cluster) execIn(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	request := c.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, clientgoscheme.ParameterCodec)
	executor, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, request.URL().String())
	if err != nil {
		return "", err
	}
	var out, errOut bytes.Buffer // both are written at once
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &out, Stderr: &errOut})
	return out.String() + errOut.String(), err
}

func (c cluster) portForward(t *testing.T, pod, path string) string {
	t.Helper()
	return app{address: c.forward(t, metav1.NamespaceDefault, pod)}.get(t, path)
}

// forward returns the address of port 8080 of a pod, until the test ends.
func (c cluster) forward(t *testing.T, namespace, pod string) string {
	t.Helper()
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		t.Fatal(err)
	}
	url := c.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	stop, ready := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop) })
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
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
}

// serverTar builds the test's server and an image of it, as a file that "docker save" could have written.
func serverTar(t *testing.T) string {
	t.Helper()
	image, err := serverimage.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(serverimage.Reference)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "server.tar")
	if err := tarball.WriteToFile(path, tag, image); err != nil {
		t.Fatal(err)
	}
	return path
}
