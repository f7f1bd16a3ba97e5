// Package gardenlet tests the gardenlet as a whole process against real API servers, of which one is both garden and seed.
package gardenlet

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/controllermanager/certificatesigningrequest"
	"gardener.cloud/gardener/internal/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/credentials"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/test/env"
)

// waitTimeout is the end of each wait of a test. On an idle machine each takes a second or two.
const waitTimeout = 60 * time.Second

const (
	// seedName is the seed of the tests.
	seedName = "local"
	// handlerNamespace is that of the handler of ExposureClasses in the configuration.
	handlerNamespace = "istio-ingress-handler-internet"
	// gardenIdentity is the cluster identity in test/env. As the garden and the seed are one cluster, both have it.
	gardenIdentity = "garden-test"
)

const configuration = `
apiVersion: gardenlet.config.gardener.cloud/v1alpha1
kind: GardenletConfiguration
gardenClientConnection:
  bootstrapKubeconfig: {namespace: garden, name: gardenlet-kubeconfig-bootstrap}
  kubeconfigSecret: {namespace: garden, name: gardenlet-kubeconfig}
  kubeconfigValidity: {validity: 10m}
leaderElection: {leaderElect: false}
logFormat: text
controllers:
  seed: {leaseResyncSeconds: 1}
  backupEntry: {deletionGracePeriodHours: 1, deletionGracePeriodShootPurposes: [production]}
resources:
  capacity: {shoots: 10}
  reserved: {shoots: 2}
exposureClassHandlers:
- name: internet
  loadBalancerService: {annotations: {load-balancer.example.com/kind: public}}
seedConfig:
  metadata:
    name: local
    labels: {purpose: test}
  spec:
    provider: {type: local, region: local, zones: [a]}
    networks: {pods: 10.1.0.0/16, services: 10.2.0.0/16, nodes: 172.18.0.0/16, blockCIDRs: [169.254.169.254/32]}
    ingress: {domain: ingress.local.example.com, controller: {kind: nginx}}
    dns:
      provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
      internal: {type: local, domain: internal.example.com, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
`

// garden is what the tests share.
type garden struct {
	*env.Env
	c     client.WithWatch
	audit audit
}

func TestGardenlet(t *testing.T) {
	// No pod answers the webhooks that the gardenlet deploys.
	audit, audited := newAudit(t)
	e := env.Start(t, audited, env.WithAdmissionController(), env.KubeAPIServerFlags(
		"--disable-admission-plugins=MutatingAdmissionWebhook,ValidatingAdmissionWebhook",
		// It asks whether a gardenlet may change the owners of what it writes.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"))
	if err := addKinds(e.Scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	logf.SetLogger(logr.Discard()) // gardenlets have their own
	g := &garden{Env: e, c: c, audit: audit}
	g.prepare(t)
	g.playNodes(t)
	t.Run("cleanup of a shoot", g.testCleanup)
	t.Run("without any access", g.testNoAccess)
	t.Run("denied", g.testDenied)
	g.sign(t)
	t.Run("bootstrap and renewal", g.testBootstrap)
	t.Run("a shoot", g.testShoot)
	t.Run("rotation", g.testRotation)
	t.Run("steady state and deletion", g.testDeletion)
	t.Run("requests", g.testRequests)
}

// prepare creates the objects that gardener-operator and others create in a garden.
func (g *garden) prepare(t *testing.T) {
	t.Helper()
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-" + seedName}},
	}
	objects = append(objects, gardenrbac.Objects()...)
	objects = append(objects,
		&corev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "provider-local"},
			Spec: corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{
				{Kind: "ControlPlane", Type: "local"}, {Kind: "DNSRecord", Type: "local"},
			}},
		},
		// Gardenlets of ManagedSeeds are bootstrapped by a ServiceAccount. It has the permissions of a bootstrap token.
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-bootstrap-" + seedName}},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "bootstrap"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gardener.cloud:system:seed-bootstrapper"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "garden", Name: "gardenlet-bootstrap-" + seedName}},
		})
	for _, object := range objects {
		if err := g.c.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// playNodes reports the pods of all Deployments as available.
func (g *garden) playNodes(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = kube.Await(ctx, g.c, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
			for _, deployment := range found {
				if kube.RolledOut(deployment) == nil && kube.Healthy(deployment) == nil {
					continue
				}
				deployment, n := deployment.DeepCopy(), *deployment.Spec.Replicas
				deployment.Status = appsv1.DeploymentStatus{
					ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n, ReadyReplicas: n,
				}
				for _, condition := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
					deployment.Status.Conditions = append(deployment.Status.Conditions,
						appsv1.DeploymentCondition{Type: condition, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"})
				}
				_ = persist(ctx, func() error { return g.c.Status().Update(ctx, deployment) }) // after a conflict, the watch has the new version
			}
			return errors.New("wait for more")
		}, nil)
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// persist retries a write until it succeeds or the object has changed: after other errors, no event triggers another attempt.
func persist(ctx context.Context, write func() error) error {
	backoff := wait.Backoff{Duration: 50 * time.Millisecond, Factor: 2, Steps: 8}
	return retry.OnError(backoff, func(err error) bool {
		return ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err)
	}, write)
}

// bootstrap creates the Secret with the bootstrap kubeconfig.
func (g *garden) bootstrap(t *testing.T) {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-bootstrap-" + seedName}}
	if err := g.c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig-bootstrap"},
		Data:       map[string][]byte{credentials.Kubeconfig: env.Kubeconfig(t, env.WithToken(g.Config, request.Status.Token))},
	}
	if err := g.c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
}

// sign runs the controller of gardener-controller-manager that approves certificates, and signs them as the kube-controller-manager does.
func (g *garden) sign(t *testing.T) {
	t.Helper()
	mgr, err := manager.New(g.Config, manager.Options{
		Scheme: g.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err == nil {
		err = certificatesigningrequest.Add(mgr, certificatesigningrequest.Values{ConcurrentSyncs: 1, Clock: clock.RealClock{}})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = mgr.Start(ctx) })
	running.Go(func() {
		// The check never succeeds, so that it runs until the context ends.
		_ = kube.Await(ctx, g.c, &certificatesv1.CertificateSigningRequestList{}, func(requests []*certificatesv1.CertificateSigningRequest) error {
			for _, request := range requests {
				if len(request.Status.Certificate) > 0 || len(request.Status.Conditions) == 0 || request.Status.Conditions[0].Type != certificatesv1.CertificateApproved {
					continue
				}
				signed, err := g.Sign(request.Spec.Request, time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 600))*time.Second)
				if err != nil {
					return err
				}
				request = request.DeepCopy()
				request.Status.Certificate = signed
				if err := persist(ctx, func() error { return g.c.Status().Update(ctx, request) }); err != nil && !apierrors.IsConflict(err) {
					return err
				}
			}
			return errors.New("wait for more")
		}, nil)
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// start runs a gardenlet until it ends or stop is called. The channel has its error.
func (g *garden) start(t *testing.T, change ...func(*gardenlet.Config)) (ended <-chan error, stop func()) {
	t.Helper()
	component := gardenlet.Component()
	kind := configfile.Kind[gardenlet.Config]{AddToScheme: component.Config.AddToScheme, Validate: component.Config.Validate}
	c, err := kind.From(strings.NewReader(configuration))
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := g.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	c.SeedClientConnection.Kubeconfig = kubeconfig
	c.Server.HealthProbes, c.Server.Metrics = nil, nil
	for _, change := range change {
		change(c)
	}
	options := component.Options
	component.Options = func(c *gardenlet.Config, o *manager.Options) {
		options(c, o)
		o.Controller.SkipNameValidation = new(true) // one process has several of them here
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		err := component.Run(ctx, c, process.NewLogger(t.Output(), "debug", "text"))
		t.Logf("the gardenlet ended: %v", err)
		done <- err
	}()
	stop = func() { cancel(); <-exited }
	t.Cleanup(stop)
	return done, stop
}

func (g *garden) testNoAccess(t *testing.T) {
	ended, _ := g.start(t)
	if err := end(t, ended); err == nil || !strings.Contains(err.Error(), "no credentials for the garden are configured") {
		t.Errorf("the gardenlet ended with %v", err)
	}
}

func (g *garden) testDenied(t *testing.T) {
	g.bootstrap(t)
	ended, _ := g.start(t)
	var request *certificatesv1.CertificateSigningRequest
	env.AwaitList(t, g.c, func(requests []*certificatesv1.CertificateSigningRequest) error {
		if len(requests) != 1 {
			return fmt.Errorf("there are %d requests", len(requests))
		}
		request = requests[0]
		return nil
	})
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue, Reason: "Unknown", Message: "who is that?",
	}}
	if err := g.c.SubResource("approval").Update(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := end(t, ended); err == nil || !strings.Contains(err.Error(), "was denied (Unknown): who is that?") {
		t.Errorf("the gardenlet ended with %v", err)
	}
}

func (g *garden) testBootstrap(t *testing.T) {
	// The bootstrap Secret exists since the test before.
	_, stop := g.start(t)
	lease := g.awaitLease(t, "")
	if diff := cmp.Diff(seedName, ptr.Deref(lease.Spec.HolderIdentity, "")); diff != "" {
		t.Errorf("holder of the Lease (-want +got):\n%s", diff)
	}
	g.awaitSeed(t, func(seed *corev1beta1.Seed) error {
		ready := kube.Condition(seed.Status.Conditions, corev1beta1.SeedGardenletReady)
		if ready == nil || ready.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("condition is %v", ready)
		}
		if seed.Labels["gardener.cloud/role"] != "seed" || seed.Labels["purpose"] != "test" {
			return fmt.Errorf("labels are %v", seed.Labels)
		}
		if last := seed.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		if healthy := kube.Condition(seed.Status.Conditions, corev1beta1.SeedSystemComponentsHealthy); healthy == nil {
			return errors.New("the Seed has no condition SeedSystemComponentsHealthy yet")
		}
		return nil
	})
	g.checkSeed(t)
	g.checkHandler(t)
	t.Run("installation of an extension", g.testInstallation)
	t.Run("backups", g.testBackups)
	t.Run("network policies", g.testNetworkPolicies)
	err := g.c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-kubeconfig-bootstrap"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("bootstrap Secret: %v", err)
	}
	before := g.kubeconfig(t)
	if before.Contexts[before.CurrentContext] == nil {
		t.Fatal("the kubeconfig has no current context")
	}
	stop()

	// It uses its certificate again.
	ended, _ := g.start(t)
	g.awaitLease(t, lease.ResourceVersion)
	if diff := cmp.Diff(before.AuthInfos, g.kubeconfig(t).AuthInfos); diff != "" {
		t.Error("the certificate is another one after a restart")
	}

	// An annotation requests a new certificate: it is written, and the gardenlet ends to use it.
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"gardener.cloud/operation":"renew"}}}`))
	if err := g.c.Patch(t.Context(), secret, patch); err != nil {
		t.Fatal(err)
	}
	if err := end(t, ended); !errors.Is(err, credentials.ErrRestart) {
		t.Errorf("the gardenlet ended with %v", err)
	}
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || len(secret.Annotations) > 0 {
		t.Errorf("annotations are %v (%v)", secret.Annotations, err)
	}
	if cmp.Equal(before.AuthInfos, g.kubeconfig(t).AuthInfos) {
		t.Error("the certificate is still the old one")
	}
}

// testRotation renews a certificate after one or two percent of its ten minutes.
func (g *garden) testRotation(t *testing.T) {
	before := g.kubeconfig(t)
	ended, _ := g.start(t, func(c *gardenlet.Config) {
		validity := c.GardenClientConnection.KubeconfigValidity
		validity.AutoRotationJitterPercentageMin, validity.AutoRotationJitterPercentageMax = new(int32(1)), new(int32(2))
	})
	if err := end(t, ended); !errors.Is(err, credentials.ErrRestart) {
		t.Errorf("the gardenlet ended with %v", err)
	}
	if cmp.Equal(before.AuthInfos, g.kubeconfig(t).AuthInfos) {
		t.Error("the certificate is still the old one")
	}
}

// testDeletion starts a gardenlet for a reconciled Seed, for which it writes only its Lease, and deletes the Seed.
func (g *garden) testDeletion(t *testing.T) {
	before := &corev1beta1.Seed{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: seedName}, before); err != nil {
		t.Fatal(err)
	}
	lease := g.awaitLease(t, "")
	backup := &corev1beta1.Backup{
		Provider: "local", CredentialsRef: &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "backup"},
	}
	// An operator does it first, as a gardenlet must not refer to credentials that it may not read.
	env.Edit(t, g.c, before.DeepCopy(), func(seed *corev1beta1.Seed) { seed.Spec.Backup = backup })
	g.start(t, func(c *gardenlet.Config) {
		c.Controllers.Seed.SyncPeriod.Duration = 100 * time.Millisecond
		c.SeedConfig.Spec.Backup = backup
	})
	// It has a new certificate since the last one was started, whose end is in the status.
	var settled *corev1beta1.Seed
	g.awaitSeed(t, func(seed *corev1beta1.Seed) error {
		if seed.Status.ClientCertificateExpirationTimestamp.Equal(before.Status.ClientCertificateExpirationTimestamp) {
			return errors.New("the end of the certificate is the old one")
		}
		if last := seed.Status.LastOperation; seed.Status.ObservedGeneration != seed.Generation || last.State != corev1beta1.LastOperationStateSucceeded {
			return fmt.Errorf("last operation is %+v", last)
		}
		settled = seed.DeepCopy()
		return nil
	})
	bucket := &corev1beta1.BackupBucket{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: string(settled.UID)}, bucket); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		lease = g.awaitLease(t, lease.ResourceVersion)
	}
	after := &corev1beta1.Seed{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: seedName}, after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(settled, after); diff != "" {
		t.Errorf("the Seed changes without a reason (-before +after):\n%s", diff)
	}

	// The former credentials for backups can be deleted when the Seed has others.
	if err := g.c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "new-backup"}}); err != nil {
		t.Fatal(err)
	}
	finalizers := func(want int) func(*corev1.Secret) error {
		return func(s *corev1.Secret) error {
			if len(s.Finalizers) != want {
				return fmt.Errorf("finalizers are %q, want %d", s.Finalizers, want)
			}
			return nil
		}
	}
	env.Await(t, g.c, env.Named[*corev1.Secret]("garden", "backup"), finalizers(1))
	env.Edit(t, g.c, after, func(seed *corev1beta1.Seed) { seed.Spec.Backup.CredentialsRef.Name = "new-backup" })
	env.Await(t, g.c, env.Named[*corev1.Secret]("garden", "new-backup"), finalizers(1))
	env.Await(t, g.c, env.Named[*corev1.Secret]("garden", "backup"), finalizers(0))

	// The Seed is not deleted while a ControllerInstallation exists.
	installation := &corev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: "last"},
		Spec: corev1beta1.ControllerInstallationSpec{
			RegistrationRef: corev1.ObjectReference{Name: "tiny"}, SeedRef: &corev1.ObjectReference{Name: seedName},
		},
	}
	if err := g.c.Create(t.Context(), installation); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, g.c, func(found []*corev1beta1.ControllerInstallation) error {
		if len(found) != 1 || len(found[0].Status.Conditions) == 0 {
			return errors.New("the gardenlet has not written conditions yet")
		}
		return nil
	})
	confirm := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"confirmation.gardener.cloud/deletion":"true"}}}`))
	if err := g.c.Patch(t.Context(), after, confirm); err != nil {
		t.Fatal(err)
	}
	if err := g.c.Delete(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	g.awaitSeed(t, func(seed *corev1beta1.Seed) error {
		if last := seed.Status.LastOperation; last.Type != corev1beta1.LastOperationTypeDelete || !strings.Contains(last.Description, "no ControllerInstallations (1)") {
			return fmt.Errorf("last operation is %+v", last)
		}
		return nil
	})
	if err := g.c.Delete(t.Context(), installation); err != nil {
		t.Fatal(err)
	}
	env.AwaitList(t, g.c, env.None[*corev1beta1.Seed])
	if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(bucket), bucket); !apierrors.IsNotFound(err) {
		t.Errorf("the BackupBucket of the Seed: %v", err)
	}
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "etcd-druid"}},
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardener-resource-manager"}},
	} {
		if err := g.c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s: %v", object, object.GetName(), err)
		}
	}
	namespace := &corev1.Namespace{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: handlerNamespace}, namespace); err != nil || namespace.DeletionTimestamp == nil {
		t.Errorf("Namespace %s is not deleted (%v)", handlerNamespace, err)
	}
}

// checkHandler checks the gateway of the handler of ExposureClasses.
func (g *garden) checkHandler(t *testing.T) {
	t.Helper()
	service := &corev1.Service{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: handlerNamespace, Name: "istio-ingressgateway"}, service); err != nil {
		t.Fatal(err)
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Annotations["load-balancer.example.com/kind"] != "public" {
		t.Errorf("the Service is of type %s, with annotations %v", service.Spec.Type, service.Annotations)
	}
	for _, object := range []client.Object{&appsv1.Deployment{}, &gatewayv1.Gateway{}} {
		if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: handlerNamespace, Name: "gateway"}, object); err != nil {
			t.Error(err)
		}
	}
}

// checkSeed checks the status of the Seed after the first flow.
func (g *garden) checkSeed(t *testing.T) {
	t.Helper()
	seed := &corev1beta1.Seed{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: seedName}, seed); err != nil {
		t.Fatal(err)
	}
	shoots := seed.Status.Allocatable["shoots"]
	got := map[string]any{
		"finalizers": seed.Finalizers, "identity": ptr.Deref(seed.Status.ClusterIdentity, ""), "allocatable": shoots.String(),
		"version": seed.Status.KubernetesVersion != nil && strings.HasPrefix(*seed.Status.KubernetesVersion, "v1."),
		"expiry":  seed.Status.ClientCertificateExpirationTimestamp != nil, "gardener": seed.Status.Gardener != nil,
		"observed": seed.Status.ObservedGeneration == seed.Generation, "progress": seed.Status.LastOperation.Progress,
	}
	want := map[string]any{
		"finalizers": []string{"gardener"}, "identity": gardenIdentity, "allocatable": "8", "version": true, "expiry": true, "gardener": true,
		"observed": true, "progress": int32(100),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Seed (-want +got):\n%s", diff)
	}
}

// kubeconfig is what the gardenlet wrote.
func (g *garden) kubeconfig(t *testing.T) *clientcmdapi.Config {
	t.Helper()
	secret := &corev1.Secret{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet-kubeconfig"}, secret); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(secret.Data[credentials.Kubeconfig])
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// awaitLease waits until the Lease was renewed since a version of it.
func (g *garden) awaitLease(t *testing.T, version string) *coordinationv1.Lease {
	t.Helper()
	var lease *coordinationv1.Lease
	env.AwaitList(t, g.c, func(leases []*coordinationv1.Lease) error {
		if len(leases) == 0 || leases[0].ResourceVersion == version {
			return errors.New("the Lease is not renewed")
		}
		lease = leases[0]
		return nil
	}, client.InNamespace("gardener-system-seed-lease"))
	return lease
}

func (g *garden) awaitSeed(t *testing.T, check func(*corev1beta1.Seed) error) {
	t.Helper()
	env.AwaitList(t, g.c, func(seeds []*corev1beta1.Seed) error {
		if len(seeds) != 1 {
			return fmt.Errorf("there are %d Seeds", len(seeds))
		}
		return check(seeds[0])
	})
}

// playExtension reconciles extension resources whenever the gardenlet requests it, which may be twice, as its cache may be outdated. The function
// sets the status of a ready resource. It ends with the test.
func playExtension[T client.Object](t *testing.T, g *garden, list client.ObjectList, setReady func(T)) {
	t.Helper()
	work := func(ctx context.Context, object T) error {
		return retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if err := g.c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return client.IgnoreNotFound(err)
			}
			if object.GetAnnotations()["gardener.cloud/operation"] != "reconcile" || object.GetDeletionTimestamp() != nil {
				return nil
			}
			setReady(object)
			if err := g.c.Status().Update(ctx, object); err != nil {
				return err
			}
			// The annotation is removed last: until then, all of it is retried after a conflict.
			annotations := object.GetAnnotations()
			delete(annotations, "gardener.cloud/operation")
			object.SetAnnotations(annotations)
			object.SetFinalizers([]string{"example.com/extension"})
			return g.c.Update(ctx, object)
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { cancel(); <-ended })
	go func() {
		defer close(ended)
		_ = kube.Await(ctx, g.c, list, func(found []T) error { // until the context ends
			for _, object := range found {
				if err := work(ctx, object.DeepCopyObject().(T)); err != nil && ctx.Err() == nil { //nolint:forcetypeassert // a copy has its original's type
					t.Errorf("the extension: %v", err)
				}
			}
			return errors.New("there may be more")
		}, nil)
	}()
}

// end waits for the end of a gardenlet.
func end(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(waitTimeout):
		t.Fatal("the gardenlet does not end")
		return nil
	}
}
