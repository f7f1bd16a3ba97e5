// Package env is a garden without controllers: etcd, a kube-apiserver and gardener-apiserver, for tests that need real API
// servers.
package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "gardener.cloud/gardener/api/authentication/v1alpha1"
	admissioncontrollerconfigv1alpha1 "gardener.cloud/gardener/api/config/admissioncontroller/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	settingsv1alpha1 "gardener.cloud/gardener/api/settings/v1alpha1"
	admissioncontrollerprocess "gardener.cloud/gardener/internal/admissioncontroller"
	"gardener.cloud/gardener/internal/apiserver"
	"gardener.cloud/gardener/internal/apiserver/admission"
	"gardener.cloud/gardener/internal/apiserver/admission/projectmutator"
	"gardener.cloud/gardener/test/ports"
)

const (
	// startTimeout is how long the servers may take until they answer; it takes seconds on an idle machine.
	startTimeout = 3 * time.Minute
	// lookAgain is how often a server that is starting is asked whether it is ready.
	lookAgain = 50 * time.Millisecond

	namespace = "garden"
)

// apiVersions are those that gardener-apiserver serves.
var apiVersions = []schema.GroupVersion{
	gardencorev1.SchemeGroupVersion, corev1beta1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
	seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion, settingsv1alpha1.SchemeGroupVersion,
}

// ErrNotBuilt says that the distribution has not built the servers yet.
var ErrNotBuilt = errors.New("etcd or kubernetes is not built; build them with: bin/distribution build kubernetes etcd")

// Env is a running garden. Its store is empty at first, and goes away with it.
type Env struct {
	// Config is how an administrator reaches it.
	Config *rest.Config
	// Client is a client of the administrator.
	Client client.Client
	// Scheme has the types that the client knows.
	Scheme *runtime.Scheme

	// EtcdURL is where the store is reached.
	EtcdURL string
	// Direct is how an administrator reaches gardener-apiserver without the aggregator, for its metrics and profiles.
	Direct *rest.Config

	options options
	certs   *certificates
	dir     string
	pids    map[string]int
	stop    []func() // in the order of the start

	admissionController *admissionController
}

type options struct {
	binary              string
	flags               []string
	kubeAPIServer       []string
	admissionController bool
	// admissionControllerConfig changes its configuration.
	admissionControllerConfig []func(*admissioncontrollerconfigv1alpha1.AdmissionControllerConfiguration)
}

// Option changes how a garden is started.
type Option func(*options)

// Binary runs gardener-apiserver as a process of its own, from a binary of cmd/gardener, so that it can be measured.
func Binary(path string) Option { return func(o *options) { o.binary = path } }

// Flags adds flags to those of gardener-apiserver.
func Flags(flags ...string) Option { return func(o *options) { o.flags = append(o.flags, flags...) } }

// KubeAPIServerFlags adds flags to those of the kube-apiserver.
func KubeAPIServerFlags(flags ...string) Option {
	return func(o *options) { o.kubeAPIServer = append(o.kubeAPIServer, flags...) }
}

// Lenient turns off the admission plugins of the garden, except for some by their names and the one that gives projects an owner: what
// objects refer to need not exist, and deletions need no confirmation. It is for tests of controllers.
func Lenient(except ...string) Option {
	return func(o *options) {
		kubernetes := genericoptions.NewAdmissionOptions().RecommendedPluginOrder
		off := slices.DeleteFunc(admission.NewOptions().RecommendedPluginOrder, func(name string) bool {
			return name == projectmutator.Name || slices.Contains(kubernetes, name) || slices.Contains(except, name)
		})
		o.flags = append(o.flags, "--disable-admission-plugins="+strings.Join(off, ","))
	}
}

// The programs of a garden, as PID knows them.
const (
	Etcd              = "etcd"
	KubeAPIServer     = "kube-apiserver"
	GardenerAPIServer = apiserver.Name
	// AdmissionController has a process of its own if there is a Binary.
	AdmissionController = admissioncontrollerprocess.Name
)

// PID returns the process of a program of the garden, zero if it has none of its own.
func (e *Env) PID(program string) int { return e.pids[program] }

// AdminFiles are the files with the certificate and the key of the administrator.
func (e *Env) AdminFiles() (cert, key string) {
	return filepath.Join(e.dir, "admin.crt"), filepath.Join(e.dir, "admin.key")
}

// Sign signs a certificate request in PEM format for a client of the garden. Nobody else in it does.
func (e *Env) Sign(request []byte, lifetime time.Duration) ([]byte, error) {
	return e.certs.sign(request, lifetime)
}

// DatabaseFile is the file that etcd keeps the objects in.
func (e *Env) DatabaseFile() string { return filepath.Join(e.dir, "etcd", "member", "snap", "db") }

// Start starts a garden for a test and stops it when the test is over. Without the servers' binaries the test is skipped.
func Start(t testing.TB, opts ...Option) *Env {
	t.Helper()
	e, err := New(t.Context(), io.Discard, opts...)
	switch {
	case errors.Is(err, ErrNotBuilt) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Errorf("stop the garden: %v", err)
		}
	})
	return e
}

// New starts a garden. The logs of its servers go to a writer. One per process, unless gardener-apiserver has its own.
func New(ctx context.Context, logs io.Writer, opts ...Option) (*Env, error) {
	etcd, kubeAPIServer, err := binaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "garden")
	if err != nil {
		return nil, err
	}
	// It lives until Stop, even if the context of the one who starts it ends before.
	running := context.WithoutCancel(ctx)
	e := &Env{dir: dir, pids: map[string]int{}}
	for _, option := range opts {
		option(&e.options)
	}
	ctx, stopWaiting := context.WithTimeout(ctx, startTimeout)
	defer stopWaiting()
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	if err := e.start(ctx, running, ended, etcd, kubeAPIServer, logs); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

// Stop ends all servers and removes their data. The second time it has nothing left to do.
func (e *Env) Stop() error {
	e.StopAdmissionController()
	for _, stop := range slices.Backward(e.stop) {
		stop()
	}
	e.stop = nil
	return os.RemoveAll(e.dir)
}

// WriteKubeconfig writes the administrator's kubeconfig to a file.
func (e *Env) WriteKubeconfig(file string) error {
	return clientcmd.WriteToFile(*kubeconfigOf(e.Config), file)
}

// start starts the servers. They run in the context running, while ctx is for waiting; ended hears why a server does not go on.
func (e *Env) start(ctx, running context.Context, ended context.CancelCauseFunc, etcd, kubeAPIServer string, logs io.Writer) error {
	certs, err := newCertificates(e.dir)
	if err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	e.certs = certs
	found, err := ports.Find(6)
	if err != nil {
		return err
	}
	address := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(found[i])) }
	etcdURL, peerURL := "http://"+address(0), "http://"+address(1)
	e.EtcdURL = etcdURL
	if err := e.exec(running, ended, logs, Etcd, etcd,
		"--data-dir="+filepath.Join(e.dir, "etcd"), "--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL,
		"--listen-peer-urls="+peerURL, "--initial-advertise-peer-urls="+peerURL, "--initial-cluster=default="+peerURL,
		"--unsafe-no-fsync", "--log-level=error",
	); err != nil {
		return err
	}
	authorization := []string{rolesOnly}
	if e.options.admissionController {
		if authorization, err = e.prepareAdmissionController(found[4], found[5]); err != nil {
			return err
		}
	}
	flags := slices.Concat(e.kubeAPIServerFlags(found[2]), authorization, e.options.kubeAPIServer)
	if err := e.exec(running, ended, logs, KubeAPIServer, kubeAPIServer, flags...); err != nil {
		return err
	}
	e.Config = e.adminConfig(found[2])
	kubeconfig := filepath.Join(e.dir, "kubeconfig")
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	if err := awaitOK(ctx, e.Config, "/readyz"); err != nil {
		return fmt.Errorf("kube-apiserver: %w", err)
	}
	args := append([]string{
		"--etcd-servers=" + etcdURL, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(found[3]),
		"--tls-cert-file=" + certs.path("server.crt"), "--tls-private-key-file=" + certs.path("server.key"),
		"--cluster-identity=garden-test", "--log-format=text",
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
	}, e.options.flags...)
	if e.options.binary != "" {
		if err := e.exec(running, ended, logs, GardenerAPIServer, e.options.binary, append([]string{GardenerAPIServer}, args...)...); err != nil {
			return err
		}
	} else {
		cmd := apiserver.NewCommand() //nolint:contextcheck // it gets its context when it is executed
		cmd.SetOut(logs)
		cmd.SetErr(logs)
		klog.LogToStderr(false)
		klog.SetOutput(logs)
		// It sets the logger of this process, whose clients log as well once it runs.
		if err := errors.Join(cmd.ParseFlags(args), cmd.PreRunE(cmd, nil)); err != nil {
			return err
		}
		e.run(running, ended, func(ctx context.Context) error {
			cmd.SetContext(ctx)
			return cmd.RunE(cmd, nil)
		})
	}
	own := rest.CopyConfig(e.Config)
	own.Host = "https://" + address(3)
	e.Direct = own
	if err := awaitOK(ctx, own, "/readyz"); err != nil {
		return fmt.Errorf("gardener-apiserver: %w", err)
	}
	if err := e.register(ctx, certs.ca, int32(found[3])); err != nil {
		return err
	}
	if e.admissionController != nil {
		return e.startAdmissionController(ctx, running, logs)
	}
	return nil
}

// AddCluster starts another kube-apiserver, with a store of its own, for tests of what works on two clusters. It stops with the garden.
func (e *Env) AddCluster(t testing.TB) *rest.Config {
	t.Helper()
	_, kubeAPIServer, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	found, err := ports.Find(1)
	if err != nil {
		t.Fatal(err)
	}
	flags := append(e.kubeAPIServerFlags(found[0]), rolesOnly, "--etcd-prefix=/cluster-"+strconv.Itoa(found[0]))
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	ctx, ended := context.WithCancelCause(ctx)
	defer ended(nil)
	name := KubeAPIServer + "-" + strconv.Itoa(found[0])
	if err := e.exec(context.WithoutCancel(t.Context()), ended, io.Discard, name, kubeAPIServer, flags...); err != nil {
		t.Fatal(err)
	}
	config := e.adminConfig(found[0])
	if err := awaitOK(ctx, config, "/readyz"); err != nil {
		t.Fatalf("kube-apiserver: %v", err)
	}
	return config
}

// adminConfig is how an administrator reaches a kube-apiserver.
func (e *Env) adminConfig(port int) *rest.Config {
	config := &rest.Config{
		Host: "https://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: e.certs.ca, CertData: e.certs.adminCert, KeyData: e.certs.adminKey},
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return again{next} })
	return config
}

func (e *Env) kubeAPIServerFlags(port int) []string {
	certs := e.certs
	return []string{
		"--etcd-servers=" + e.EtcdURL, "--bind-address=127.0.0.1", "--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + certs.path("server.crt"), "--tls-private-key-file=" + certs.path("server.key"), "--client-ca-file=" + certs.path("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + certs.path("server.key"),
		"--service-account-signing-key-file=" + certs.path("server.key"), "--service-cluster-ip-range=10.0.0.0/24",
		"--requestheader-client-ca-file=" + certs.path("ca.crt"), "--requestheader-allowed-names=" + proxyName,
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + certs.path("proxy.crt"), "--proxy-client-key-file=" + certs.path("proxy.key"),
		// No controller makes the account that pods need; an address of this machine would be a poor endpoint.
		"--disable-admission-plugins=ServiceAccount", "--endpoint-reconciler-type=none",
	}
}

// register makes the kube-apiserver hand on requests for our groups.
func (e *Env) register(ctx context.Context, ca []byte, port int32) error {
	e.Scheme = runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(e.Scheme), apiregistrationv1.AddToScheme(e.Scheme),
		corev1beta1.AddToScheme(e.Scheme), gardencorev1.AddToScheme(e.Scheme), securityv1alpha1.AddToScheme(e.Scheme),
		seedmanagementv1alpha1.AddToScheme(e.Scheme), operationsv1alpha1.AddToScheme(e.Scheme), settingsv1alpha1.AddToScheme(e.Scheme),
		authenticationv1alpha1.AddToScheme(e.Scheme),
	)
	if err != nil {
		return err
	}
	if e.Client, err = client.New(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return err
	}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: apiserver.Name},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
	}
	var services []*apiregistrationv1.APIService
	for _, version := range apiVersions {
		service := &apiregistrationv1.APIService{
			ObjectMeta: metav1.ObjectMeta{Name: version.Version + "." + version.Group},
			Spec: apiregistrationv1.APIServiceSpec{
				Group: version.Group, Version: version.Version, GroupPriorityMinimum: 10000, VersionPriority: 20, CABundle: ca,
				Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: apiserver.Name, Port: &port},
			},
		}
		services = append(services, service)
		objects = append(objects, service)
	}
	for _, obj := range objects {
		if err := e.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("create %T %s: %w", obj, obj.GetName(), err)
		}
	}
	// The condition Available comes a moment before requests get through.
	for _, service := range services {
		if err := awaitOK(ctx, e.Config, "/apis/"+service.Spec.Group+"/"+service.Spec.Version); err != nil {
			return fmt.Errorf("APIService %s: %w", service.Name, err)
		}
	}
	return awaitDiscovered(ctx, e.Config)
}

// awaitDiscovered waits until the kube-apiserver tells what the garden serves, which is later than it serves it.
func awaitDiscovered(ctx context.Context, config *rest.Config) error {
	discoverer, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var missing error
	err = wait.PollUntilContextCancel(ctx, lookAgain, true, func(context.Context) (bool, error) {
		_, resources, stale, err := discoverer.GroupsAndMaybeResources()
		if missing = err; err != nil {
			return false, nil
		}
		for _, version := range apiVersions {
			if resources[version] == nil || stale[version] != nil {
				missing = errors.Join(missing, fmt.Errorf("%s is not discovered", version), stale[version])
			}
		}
		return missing == nil, nil
	})
	if err != nil {
		return errors.Join(context.Cause(ctx), missing)
	}
	return nil
}

// exec runs a program until the garden stops. If it ends before, ended hears what it said last.
func (e *Env) exec(ctx context.Context, ended context.CancelCauseFunc, logs io.Writer, name, path string, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, path, args...)
	last := &tail{next: logs}
	cmd.Stdout, cmd.Stderr = last, last
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // a test that crashes leaves nothing behind
	if err := cmd.Start(); err != nil {
		cancel()
		return fmt.Errorf("start %s: %w", name, err)
	}
	e.pids[name] = cmd.Process.Pid
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its state says it too
		ended(fmt.Errorf("%s has ended with %s: %s", name, cmd.ProcessState, last.text))
	}()
	e.stop = append(e.stop, func() {
		cancel()
		<-done
	})
	return nil
}

// tail passes on what a program says, and keeps the end of it.
type tail struct {
	next io.Writer
	text []byte
}

// Write is for one goroutine at a time.
func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-4096):]
	return t.next.Write(p)
}

// run runs a server in this process until the garden stops. If it ends before, ended hears why.
func (e *Env) run(ctx context.Context, ended context.CancelCauseFunc, serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ended(errors.Join(errors.New("the server has ended"), serve(ctx)))
	}()
	e.stop = append(e.stop, func() {
		cancel()
		<-done
	})
}

// awaitOK waits until a server answers a request for a path, or the context is canceled with a cause.
func awaitOK(ctx context.Context, config *rest.Config, path string) error {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	last := errors.New("none")
	err = wait.PollUntilContextCancel(ctx, lookAgain, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
		if err != nil {
			return false, err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		last = errors.Join(err, fmt.Errorf("%s: %s", response.Status, body))
		return response.StatusCode == http.StatusOK, nil
	})
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause // why the wait ended
	}
	if err != nil {
		return fmt.Errorf("not ready: %w; last answer: %w", err, last)
	}
	return nil
}

// binaries returns the paths of etcd and kube-apiserver.
func binaries() (etcd, kubeAPIServer string, err error) {
	etcd, etcdErr := program("etcd", "etcd")
	kubeAPIServer, kubeErr := program("kubernetes", "kube-apiserver")
	if err := errors.Join(etcdErr, kubeErr); err != nil {
		return "", "", fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	return etcd, kubeAPIServer, nil
}
