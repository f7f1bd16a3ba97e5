// Package extension tests the library for authors of extensions against real API servers.
package extension

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/env"
)

const (
	// patience is how long a test waits for something to become so.
	patience  = 60 * time.Second
	namespace = "shoot--dev--crazy"
	finalizer = "extensions.gardener.cloud/infrastructure"
)

// actuator does what a test says, and remembers what it was asked for.
type actuator struct {
	mutex sync.Mutex
	calls []string
	do    func(context.Context, *extensionsv1alpha1.Infrastructure, *extension.Cluster) error
}

func (a *actuator) call(ctx context.Context, what string, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	a.mutex.Lock()
	a.calls = append(a.calls, what+" "+obj.Name)
	do := a.do
	a.mutex.Unlock()
	if !slices.Contains(obj.Finalizers, finalizer) {
		return errors.New("there is no finalizer")
	}
	if do == nil {
		return nil
	}
	return do(ctx, obj, cluster)
}

// next says what the actuator does from now on, and forgets what was.
func (a *actuator) next(do func(context.Context, *extensionsv1alpha1.Infrastructure, *extension.Cluster) error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.calls, a.do = nil, do
}

func (a *actuator) called() []string {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return slices.Clone(a.calls)
}

func (a *actuator) Reconcile(ctx context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	return a.call(ctx, "reconcile", obj, cluster)
}

func (a *actuator) Delete(ctx context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	return a.call(ctx, "delete", obj, cluster)
}

func (a *actuator) ForceDelete(ctx context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	return a.call(ctx, "force delete", obj, cluster)
}

func (a *actuator) Migrate(ctx context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	return a.call(ctx, "migrate", obj, cluster)
}

func (a *actuator) Restore(ctx context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
	return a.call(ctx, "restore", obj, cluster)
}

// seed is what the tests share.
type seed struct {
	c        client.WithWatch
	actuator *actuator
	// cache is what the controllers know, which may be a moment behind.
	cache client.Reader
}

func TestExtension(t *testing.T) {
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	if err := errors.Join(extensionsv1alpha1.AddToScheme(e.Scheme), apiextensionsv1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Extensions()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	s := &seed{c: c, actuator: &actuator{}}
	s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, cluster(nil))
	mgr, err := manager.New(e.Config, manager.Options{
		Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: crconfig.Controller{SkipNameValidation: new(true)}, // a test may run more than once
	})
	if err != nil {
		t.Fatal(err)
	}
	s.cache = mgr.GetClient()
	if err := errors.Join(
		extension.Add(mgr, extension.Options[*extensionsv1alpha1.Infrastructure]{Name: "test", Types: []string{"local"}, Actuator: s.actuator, Timeout: 5 * time.Second}),
		extension.AddHeartbeat(mgr, "test", namespace),
	); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	t.Run("operations", s.testOperations)
	t.Run("errors", s.testErrors)
	t.Run("waiting", s.testWaiting)
	t.Run("timeout", s.testTimeout)
	t.Run("migration", s.testMigration)
	t.Run("shoots that are left alone", s.testResting)
	t.Run("deletion by force", s.testForce)
	t.Run("heartbeat", s.testHeartbeat)
}

func (s *seed) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := s.c.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T: %v", obj, err)
		}
	}
}

func cluster(change func(*corev1beta1.Shoot)) *extensionsv1alpha1.Cluster {
	shoot := &corev1beta1.Shoot{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1beta1.SchemeGroupVersion.String(), Kind: "Shoot"},
		ObjectMeta: metav1.ObjectMeta{Name: "crazy", Namespace: "garden-dev", Generation: 1},
	}
	if change != nil {
		change(shoot)
	}
	raw, _ := json.Marshal(shoot)
	return &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: extensionsv1alpha1.ClusterSpec{
		CloudProfile: runtime.RawExtension{Raw: []byte(`{"apiVersion":"core.gardener.cloud/v1beta1","kind":"CloudProfile","metadata":{"name":"local"}}`)},
		Shoot:        runtime.RawExtension{Raw: raw},
	}}
}

// setShoot changes the shoot, and waits until the controllers know.
func (s *seed) setShoot(t testing.TB, change func(*corev1beta1.Shoot)) {
	t.Helper()
	object := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	env.Edit(t, s.c, object, func(c *extensionsv1alpha1.Cluster) { c.Spec = cluster(change).Spec })
	env.AwaitKnown(t, s.cache, object)
}

func newInfrastructure(name, operation string) *extensionsv1alpha1.Infrastructure {
	obj := &extensionsv1alpha1.Infrastructure{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       extensionsv1alpha1.InfrastructureSpec{DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "local"}, Region: "here"},
	}
	if operation != "" {
		obj.Annotations = map[string]string{"gardener.cloud/operation": operation}
	}
	return obj
}

// change changes an object as it is now.
func (s *seed) change(t testing.TB, name string, mutate func(*extensionsv1alpha1.Infrastructure)) {
	t.Helper()
	obj := &extensionsv1alpha1.Infrastructure{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopy()
	mutate(obj)
	if err := s.c.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func order(operation string) func(*extensionsv1alpha1.Infrastructure) {
	return func(obj *extensionsv1alpha1.Infrastructure) {
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "gardener.cloud/operation", operation)
		metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "gardener.cloud/timestamp", time.Now().Format(time.RFC3339Nano))
	}
}

// await waits until a check of an object succeeds.
func (s *seed) await(t testing.TB, name string, check func(*extensionsv1alpha1.Infrastructure) error) *extensionsv1alpha1.Infrastructure {
	t.Helper()
	defer s.logCalls(t)
	return env.Await(t, s.c, env.Named[*extensionsv1alpha1.Infrastructure](namespace, name), check)
}

func (s *seed) awaitGone(t testing.TB, name string) {
	t.Helper()
	defer s.logCalls(t)
	env.AwaitGone(t, s.c, env.Named[*extensionsv1alpha1.Infrastructure](namespace, name))
}

func (s *seed) logCalls(t testing.TB) {
	t.Helper()
	if t.Failed() {
		t.Logf("the actuator was called: %v", s.actuator.called())
	}
}

// reports waits for the outcome of an operation on the current spec, with all annotations answered.
func reports(typ corev1beta1.LastOperationType, state corev1beta1.LastOperationState) func(*extensionsv1alpha1.Infrastructure) error {
	return func(obj *extensionsv1alpha1.Infrastructure) error {
		last := obj.Status.LastOperation
		if last == nil || last.Type != typ || last.State != state || obj.Status.ObservedGeneration != obj.Generation || obj.Annotations["gardener.cloud/operation"] != "" {
			return fmt.Errorf("generation %d, annotations %v, status %+v, last operation %+v", obj.Generation, obj.Annotations, obj.Status, last)
		}
		return nil
	}
}

func (s *seed) testOperations(t *testing.T) {
	s.actuator.next(func(_ context.Context, obj *extensionsv1alpha1.Infrastructure, cluster *extension.Cluster) error {
		obj.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{"shoot":"` + cluster.Shoot.Name + `","profile":"` + cluster.CloudProfile.Name + `"}`)}
		return nil
	})
	foreign := newInfrastructure("foreign", "reconcile")
	foreign.Spec.Type = "aws"
	ofSeed := newInfrastructure("of-seed", "reconcile")
	ofSeed.Spec.Class = new(extensionsv1alpha1.ExtensionClassSeed)
	s.create(t, foreign, ofSeed, newInfrastructure("own", "reconcile"))
	made := s.await(t, "own", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
	if !slices.Contains(made.Finalizers, finalizer) || string(made.Status.ProviderStatus.Raw) != `{"profile":"local","shoot":"crazy"}` || made.Status.LastOperation.Progress != 100 {
		t.Errorf("it is %+v", made)
	}
	// A change of the spec waits for the order.
	s.change(t, "own", func(obj *extensionsv1alpha1.Infrastructure) { obj.Spec.SSHPublicKey = []byte("key") })
	s.change(t, "own", order("reconcile"))
	s.await(t, "own", reports(corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationStateSucceeded))
	if err := s.c.Delete(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(t, "own")
	if got := s.actuator.called(); !slices.Equal(slices.Compact(got), []string{"reconcile own", "delete own"}) {
		t.Errorf("the actuator was called: %v", got)
	}
}

func (s *seed) testErrors(t *testing.T) {
	tries, thrice := 0, make(chan struct{})
	s.actuator.next(func(_ context.Context, obj *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
		if tries++; tries == 3 {
			close(thrice)
		}
		obj.Status.State = &runtime.RawExtension{Raw: []byte(`{"vpc":"half"}`)}
		return errorcode.With(errors.New("no more networks"), corev1beta1.ErrorInfraQuotaExceeded)
	})
	s.create(t, newInfrastructure("failing", "reconcile"))
	failed := s.await(t, "failing", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError))
	last := failed.Status.LastError
	if last == nil || last.Description != "no more networks" || !slices.Equal(last.Codes, []corev1beta1.ErrorCode{corev1beta1.ErrorInfraQuotaExceeded}) {
		t.Errorf("last error is %+v", last)
	}
	if failed.Status.State == nil || string(failed.Status.State.Raw) != `{"vpc":"half"}` {
		t.Errorf("state is lost: %+v", failed.Status.State)
	}
	// It is tried again without an order, and what is reported stays the same meanwhile.
	select {
	case <-thrice:
	case <-time.After(patience):
		t.Fatalf("it is not tried again: %v", s.actuator.called())
	}
	again := s.await(t, "failing", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateError))
	if !again.Status.LastOperation.LastUpdateTime.Equal(&failed.Status.LastOperation.LastUpdateTime) {
		t.Errorf("the same error was written again: %+v", again.Status.LastOperation)
	}
	s.actuator.next(nil)
	healed := s.await(t, "failing", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
	if healed.Status.LastError != nil {
		t.Errorf("last error is still %+v", healed.Status.LastError)
	}
}

func (s *seed) testWaiting(t *testing.T) {
	var mutex sync.Mutex
	ready := false
	s.actuator.next(func(context.Context, *extensionsv1alpha1.Infrastructure, *extension.Cluster) error {
		mutex.Lock()
		defer mutex.Unlock()
		if !ready {
			return &extension.Wait{Reason: "1 of 2 networks is there", After: 100 * time.Millisecond}
		}
		return nil
	})
	s.create(t, newInfrastructure("slow", "reconcile"))
	waits := s.await(t, "slow", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateProcessing))
	if waits.Status.LastError != nil || waits.Status.LastOperation.Description != "1 of 2 networks is there" && waits.Status.LastOperation.Progress != 1 {
		t.Errorf("it says %+v", waits.Status)
	}
	mutex.Lock()
	ready = true
	mutex.Unlock()
	s.await(t, "slow", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
}

func (s *seed) testTimeout(t *testing.T) {
	s.actuator.next(func(ctx context.Context, _ *extensionsv1alpha1.Infrastructure, _ *extension.Cluster) error {
		<-ctx.Done()
		return ctx.Err()
	})
	s.create(t, newInfrastructure("hanging", "reconcile"))
	s.await(t, "hanging", func(obj *extensionsv1alpha1.Infrastructure) error {
		if last := obj.Status.LastError; last == nil || last.Description != "context deadline exceeded (timed out after 5s)" {
			return fmt.Errorf("last error is %+v", last)
		}
		return nil
	})
	s.actuator.next(nil)
	s.await(t, "hanging", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
}

func (s *seed) testMigration(t *testing.T) {
	s.actuator.next(nil)
	s.create(t, newInfrastructure("moving", "wait-for-state"))
	s.change(t, "moving", order("restore"))
	s.await(t, "moving", reports(corev1beta1.LastOperationTypeRestore, corev1beta1.LastOperationStateSucceeded))
	s.change(t, "moving", order("migrate"))
	moved := s.await(t, "moving", reports(corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationStateSucceeded))
	if len(moved.Finalizers) > 0 {
		t.Errorf("finalizers are %v", moved.Finalizers)
	}
	// What has moved is neither reconciled nor deleted.
	s.change(t, "moving", order("reconcile"))
	if err := s.c.Delete(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(t, "moving")
	// Twice for one order is fine: the controller may not have seen yet what it did.
	if got := slices.Compact(s.actuator.called()); !slices.Equal(got, []string{"restore moving", "migrate moving"}) {
		t.Errorf("the actuator was called: %v", got)
	}
}

func (s *seed) testResting(t *testing.T) {
	s.actuator.next(nil)
	s.setShoot(t, func(shoot *corev1beta1.Shoot) {
		shoot.Status.ObservedGeneration = 1
		shoot.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateFailed}
	})
	s.create(t, newInfrastructure("resting", "reconcile"))
	s.setShoot(t, func(shoot *corev1beta1.Shoot) {
		shoot.Annotations = map[string]string{"shoot.gardener.cloud/ignore": "true"}
	})
	if calls := s.actuator.called(); len(calls) > 0 {
		t.Errorf("the actuator was called: %v", calls)
	}
	s.setShoot(t, nil)
	s.await(t, "resting", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
}

func (s *seed) testForce(t *testing.T) {
	s.actuator.next(nil)
	obj := newInfrastructure("stuck", "reconcile")
	s.create(t, obj)
	s.await(t, "stuck", reports(corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationStateSucceeded))
	s.setShoot(t, func(shoot *corev1beta1.Shoot) {
		shoot.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		shoot.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": "true"}
	})
	if err := s.c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	s.awaitGone(t, "stuck")
	if got := s.actuator.called(); len(got) == 0 || got[len(got)-1] != "force delete stuck" {
		t.Errorf("the actuator was called: %v", got)
	}
}

func (s *seed) testHeartbeat(t *testing.T) {
	lease := env.Named[*coordinationv1.Lease](namespace, "gardener-extension-heartbeat")
	env.Await(t, s.c, lease, func(lease *coordinationv1.Lease) error {
		if *lease.Spec.HolderIdentity != "test" || lease.Spec.RenewTime == nil {
			return errors.New("there is no heartbeat")
		}
		return nil
	})
}
