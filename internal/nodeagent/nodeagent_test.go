package nodeagent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	componentosc "gardener.cloud/gardener/internal/component/operatingsystemconfig"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/nodeagent/access"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
	"gardener.cloud/gardener/internal/nodeagent/systemd/fake"
	"gardener.cloud/gardener/test/env"
)

const (
	nodeName = "machine-1"
	pool     = "small"
	hash     = "0123456789abcdef"

	// timeout is how long to wait for something that takes well below a second on an idle machine.
	timeout = time.Minute
)

// shoot is a cluster with a machine whose agent runs in the test.
type shoot struct {
	*env.Env
	t       *testing.T
	client  client.WithWatch
	root    rootfs.Dir
	systemd *fake.Systemd
	config  *Config
}

// TestMachineBecomesANodeAndStaysOne goes through the life of a machine, with a real API server, and a fake systemd and kubelet.
func TestMachineBecomesANodeAndStaysOne(t *testing.T) {
	step := env.Story(t)
	e := env.Start(t)
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &shoot{Env: e, t: t, client: c, root: rootfs.Dir(t.TempDir()), systemd: &fake.Systemd{}}
	s.config = &Config{APIServer: nodeagentconfigv1alpha1.APIServer{Server: e.Config.Host, CAFile: nodeagentconfigv1alpha1.ClusterCAFilePath}}
	s.config.ClientConnection.Kubeconfig = nodeagentconfigv1alpha1.KubeconfigFilePath
	s.config.Controllers.OperatingSystemConfig.SecretName = componentosc.SecretName(pool, hash)
	s.config.Controllers.OperatingSystemConfig.KubernetesVersion = "1.36.3"
	nodeagentconfigv1alpha1.SetDefaults(s.config)

	s.create(componentosc.Access(componentosc.AccessValues{SecretNames: []string{componentosc.SecretName(pool, hash)}})...)
	s.provision()
	s.getCertificate()
	s.publish("first")
	restarted := s.run()

	step("the kubelet is started, and creates its Node")
	s.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, Labels: map[string]string{
		constants.WorkerPoolGardenerNodeAgentSecretName: componentosc.SecretName(pool, hash),
	}}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	s.write(componentosc.KubeletKubeconfig, "certificate")
	first := s.awaitChecksum("")
	s.hasFile("/etc/example", "first")
	s.starts("example.service", 1)
	s.awaitNode(func(node *corev1.Node) error {
		for _, condition := range node.Status.Conditions {
			if condition.Type == nodeagentconfigv1alpha1.ConditionTypeSystemdUnitsReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions are %v", node.Status.Conditions)
	})
	lease := env.Named[*coordinationv1.Lease](metav1.NamespaceSystem, "gardener-node-agent-"+nodeName)
	env.Await(t, s.client, lease, func(lease *coordinationv1.Lease) error {
		if lease.OwnerReferences[0].Name != nodeName || *lease.Spec.LeaseDurationSeconds != 40 {
			return fmt.Errorf("the Lease is of %v, for %d seconds", lease.OwnerReferences, *lease.Spec.LeaseDurationSeconds)
		}
		return nil
	})

	step("a new configuration is published")
	s.publish("second")
	second := s.awaitChecksum(first)
	s.hasFile("/etc/example", "second")
	s.starts("example.service", 2)
	for _, path := range []string{nodeagentconfigv1alpha1.BootstrapTokenFilePath, componentosc.KubeletBootstrapKubeconfig} {
		if s.root.Exists(path) {
			t.Errorf("%s still exists", path)
		}
	}

	step("an annotation asks for units to be restarted")
	s.annotate(nodeagentconfigv1alpha1.AnnotationRestartSystemdServices, "kubelet,example.service")
	s.awaitNode(func(node *corev1.Node) error {
		if value, ok := node.Annotations[nodeagentconfigv1alpha1.AnnotationRestartSystemdServices]; ok {
			return fmt.Errorf("annotation is %q", value)
		}
		return nil
	})
	s.starts("example.service", 3)
	s.starts("kubelet.service", 1)

	step("a configuration waits for its delay, until the delay is removed")
	s.annotate(constants.NodeAgentReconciliationDelay, "1h")
	s.publish("third")
	s.annotate(constants.NodeAgentReconciliationDelay, "0s")
	s.awaitChecksum(second)
	s.hasFile("/etc/example", "third")

	step("the label of the Node names another Secret")
	s.write(componentosc.NodeAgentConfigFile, "kind: NodeAgentConfiguration\napiVersion: nodeagent.config.gardener.cloud/v1alpha1\n")
	err = kube.PatchMetadata(t.Context(), s.client, s.node(), func(o *metav1.PartialObjectMetadata) {
		o.Labels[constants.WorkerPoolGardenerNodeAgentSecretName] = "another"
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-restarted:
	case <-time.After(timeout):
		t.Fatal("the agent did not restart")
	}
	data, err := s.root.Read(componentosc.NodeAgentConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	if config, err := configKind.Decode(data); config != nil && config.Controllers.OperatingSystemConfig.SecretName != "another" {
		t.Errorf("configuration is %s (%v)", data, err)
	}
}

// soon is a context that ends after the timeout.
func (s *shoot) soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), timeout)
}

// provision does what the user data does.
func (s *shoot) provision() {
	s.write(nodeagentconfigv1alpha1.ClusterCAFilePath, string(s.Config.CAData))
	s.write(nodeagentconfigv1alpha1.MachineNameFilePath, nodeName+"\n")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap"}}
	s.create(account, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}},
	})
	token := &authenticationv1.TokenRequest{}
	if err := s.client.SubResource("token").Create(s.t.Context(), account, token); err != nil {
		s.t.Fatal(err)
	}
	s.write(nodeagentconfigv1alpha1.BootstrapTokenFilePath, token.Status.Token)
}

// getCertificate makes the agent request a certificate, and approves and signs it.
func (s *shoot) getCertificate() {
	values := access.Values{
		Root: s.root, APIServer: s.config.APIServer, Kubeconfig: s.config.ClientConnection.Kubeconfig, Hostname: "not-used", Clock: clock.RealClock{},
	}
	ctx, cancel := s.soon()
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- access.Ensure(ctx, values) }()
	err := kube.Await(ctx, s.client, &certificatesv1.CertificateSigningRequestList{}, func(found []*certificatesv1.CertificateSigningRequest) error {
		if len(found) == 0 {
			return errors.New("there is no request")
		}
		csr := found[0].DeepCopy()
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}
		if err := s.client.SubResource("approval").Update(s.t.Context(), csr); err != nil {
			return err
		}
		var err error
		if csr.Status.Certificate, err = s.Sign(csr.Spec.Request, time.Hour); err != nil {
			return err
		}
		return s.client.Status().Update(s.t.Context(), csr)
	}, nil)
	if err := errors.Join(err, <-done); err != nil {
		s.t.Fatal(err)
	}
	if err := access.Ensure(ctx, values); err != nil {
		s.t.Errorf("with a certificate: %v", err)
	}
}

// run runs the agent, with its own certificate, until the test is over. The channel is closed when it is to restart.
func (s *shoot) run() <-chan struct{} {
	config, err := clientcmd.BuildConfigFromFlags("", s.root.Path(s.config.ClientConnection.Kubeconfig))
	if err != nil {
		s.t.Fatal(err)
	}
	mgr, err := manager.New(config, manager.Options{
		Controller: crconfig.Controller{SkipNameValidation: new(true)}, // a test may run more than once
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Cache:      cache.Options{ByObject: byObject(nodeName, s.config.Controllers.OperatingSystemConfig.SecretName)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	restarted := make(chan struct{})
	m := machine{root: s.root, systemd: s.systemd, hostname: nodeName}
	if err := m.addControllers(mgr, clock.RealClock{}, s.config, func() { close(restarted) }); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
	return restarted
}

// publish writes the Secret that the agent reads.
func (s *shoot) publish(content string) {
	s.t.Helper()
	osc := &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
		Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
		Units:   []extensionsv1alpha1.Unit{{Name: "example.service", Content: new("unit"), FilePaths: []string{"/etc/example"}}},
		Files: []extensionsv1alpha1.File{{
			Path: "/etc/example", Content: extensionsv1alpha1.FileContent{Inline: &extensionsv1alpha1.FileContentInline{Data: content}},
		}},
	}}
	secret, err := componentosc.NodeAgentSecret(pool, hash, osc, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	if err := kube.Apply(s.t.Context(), s.client, "test", secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shoot) create(objects ...client.Object) {
	s.t.Helper()
	for _, object := range objects {
		if err := s.client.Create(s.t.Context(), object); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *shoot) write(path, content string) {
	s.t.Helper()
	if err := s.root.Write(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shoot) hasFile(path, want string) {
	s.t.Helper()
	if got, err := s.root.Read(path); err != nil || string(got) != want {
		s.t.Errorf("%s is %q, %v; want %q", path, got, err, want)
	}
}

func (s *shoot) starts(unit string, want int) {
	s.t.Helper()
	if got := s.systemd.Unit(unit).Starts; got != want {
		s.t.Errorf("unit %s was started %d times, want %d", unit, got, want)
	}
}

func (s *shoot) node() *corev1.Node {
	s.t.Helper()
	node := &corev1.Node{}
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Name: nodeName}, node); err != nil {
		s.t.Fatal(err)
	}
	return node
}

func (s *shoot) annotate(key, value string) {
	s.t.Helper()
	err := kube.PatchMetadata(s.t.Context(), s.client, s.node(), func(o *metav1.PartialObjectMetadata) { metav1.SetMetaDataAnnotation(&o.ObjectMeta, key, value) })
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *shoot) awaitNode(check func(*corev1.Node) error) {
	s.t.Helper()
	env.Await(s.t, s.client, env.Named[*corev1.Node]("", nodeName), check)
}

// awaitChecksum returns the checksum of the applied configuration, once it differs from an earlier one.
func (s *shoot) awaitChecksum(before string) (checksum string) {
	s.t.Helper()
	s.awaitNode(func(node *corev1.Node) error {
		checksum = node.Annotations[nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig]
		if checksum == before {
			return fmt.Errorf("checksum is %q", checksum)
		}
		if node.Annotations[constants.WorkerKubernetesVersion] != "1.36.3" || node.Labels[constants.WorkerKubernetesVersion] != "1.36.3" {
			return errors.New("the version of Kubernetes is missing")
		}
		return nil
	})
	return checksum
}

func TestAgentRestartsWhenTheHostnameChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		name, restarted := "a", false
		start := time.Now()
		err := checkHostname(t.Context(), clock.RealClock{}, "a", func() (string, error) {
			if time.Since(start) > 3*hostnameEvery {
				name = "b"
			}
			return name, nil
		}, func() { restarted = true })
		if err != nil || !restarted || time.Since(start) < 3*hostnameEvery {
			t.Errorf("checkHostname() = %v after %s, restarted %v", err, time.Since(start), restarted)
		}
	})
}

func TestKubeletWithoutCertificateOrToken(t *testing.T) {
	k := kubelet{root: rootfs.Dir(t.TempDir())}
	if err := k.prepare(); err == nil {
		t.Error("a kubelet that cannot get a certificate is no error")
	}
	if err := k.root.Write(componentosc.KubeletKubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(k.prepare(), k.tidy()); err != nil {
		t.Error(err)
	}
}
