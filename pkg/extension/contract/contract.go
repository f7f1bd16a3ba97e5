// Package contract is a test suite for extensions: it creates, changes and deletes an object of a kind as gardenlet does, and checks that the
// extension behaves as gardenlet expects. It needs an API server with the kinds of extensions.gardener.cloud, and an extension that is connected
// to it; a test of the extension provides both.
package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

// defaultTimeout limits an operation.
const defaultTimeout = time.Minute

// Suite describes the kind that is tested.
type Suite struct {
	// Client is a client of the API server.
	Client client.WithWatch
	// New returns an object of the kind that the extension can reconcile. Its name has to be a new one each time.
	New func() extensionsv1alpha1.Object
	// Foreign changes an object so that another extension is responsible for it. The test of foreign objects is skipped if it is nil.
	Foreign func(extensionsv1alpha1.Object)
	// Fulfilled checks that what the object describes exists, and Gone that it no longer does. They may be nil.
	Fulfilled, Gone func(*testing.T, extensionsv1alpha1.Object)
	// Kept checks, when an object has been migrated and deleted in its seed, that what is outside of the seed still exists. It may be nil.
	Kept func(*testing.T, extensionsv1alpha1.Object)
	// State changes the state that was saved of an object before it is given to the one in the other seed. It may be nil: the state is that of the object.
	State func(extensionsv1alpha1.Object, *runtime.RawExtension) *runtime.RawExtension
	// Restored checks an object that was restored, besides Fulfilled. It may be nil.
	Restored func(*testing.T, extensionsv1alpha1.Object)
	// Immovable says that objects of the kind cannot migrate to another seed.
	Immovable bool
	// Timeout limits an operation. Zero means a minute.
	Timeout time.Duration
}

// Run runs the suite.
func Run(t *testing.T, suite Suite) {
	t.Helper()
	s := newRun(suite)
	t.Run("create, reconcile, delete", s.lifecycle)
	t.Run("skip objects of other extensions", s.foreign)
	if !suite.Immovable {
		t.Run("migrate and restore", s.migration)
	}
}

type run struct{ Suite }

func newRun(suite Suite) *run {
	suite.Timeout = cmp.Or(suite.Timeout, defaultTimeout)
	return &run{suite}
}

func (s *run) lifecycle(t *testing.T) {
	obj := s.create(t, constants.GardenerOperationReconcile, nil)
	s.await(t, obj, done(corev1beta1.LastOperationTypeCreate))
	if len(obj.GetFinalizers()) == 0 {
		t.Error("the object has no finalizer of the extension")
	}
	s.fulfilled(t, obj)
	s.request(t, obj, constants.GardenerOperationReconcile)
	s.await(t, obj, done(corev1beta1.LastOperationTypeReconcile))
	s.fulfilled(t, obj)
	s.delete(t, obj)
	s.gone(t, obj)
}

func (s *run) foreign(t *testing.T) {
	if s.Foreign == nil {
		t.Skip("Suite.Foreign is not set")
	}
	obj := s.create(t, constants.GardenerOperationReconcile, s.Foreign)
	// When an object of its own that was created later is ready, the extension has observed this one, too.
	own := s.create(t, constants.GardenerOperationReconcile, nil)
	s.await(t, own, done(corev1beta1.LastOperationTypeCreate))
	if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	if obj.GetAnnotations()[constants.GardenerOperation] == "" || obj.GetExtensionStatus().GetLastOperation() != nil || len(obj.GetFinalizers()) > 0 {
		t.Errorf("the extension has reconciled it: annotations %v, finalizers %v, last operation %+v",
			obj.GetAnnotations(), obj.GetFinalizers(), obj.GetExtensionStatus().GetLastOperation())
	}
	s.delete(t, obj)
	s.delete(t, own)
}

// migration does what the gardenlets of two seeds do: one migrates and deletes the object, the other creates it again, gives it the state, and restores it.
func (s *run) migration(t *testing.T) {
	obj := s.create(t, constants.GardenerOperationReconcile, nil)
	s.await(t, obj, done(corev1beta1.LastOperationTypeCreate))
	other, state := obj.DeepCopyObject().(extensionsv1alpha1.Object), obj.GetExtensionStatus().GetState() //nolint:forcetypeassert // a copy has its original's type
	if s.State != nil {
		state = s.State(obj, state)
	}
	s.request(t, obj, constants.GardenerOperationMigrate)
	s.await(t, obj, func(o extensionsv1alpha1.Object) error {
		if len(o.GetFinalizers()) > 0 {
			return fmt.Errorf("it still has finalizers %v", o.GetFinalizers())
		}
		return done(corev1beta1.LastOperationTypeMigrate)(o)
	})
	s.delete(t, obj)
	if s.Kept != nil {
		s.Kept(t, obj)
	}

	other.SetResourceVersion("")
	other.SetUID("")
	other.SetFinalizers(nil)
	annotate(other, constants.GardenerOperationWaitForState)
	if err := s.Client.Create(t.Context(), other); err != nil {
		t.Fatalf("create in the other seed: %v", err)
	}
	before := other.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	other.GetExtensionStatus().SetState(state)
	if err := s.Client.Status().Patch(t.Context(), other, client.MergeFrom(before)); err != nil {
		t.Fatalf("write state: %v", err)
	}
	if len(other.GetFinalizers()) > 0 || other.GetExtensionStatus().GetLastOperation() != nil {
		t.Error("the extension has reconciled an object that waits for its state")
	}
	s.request(t, other, constants.GardenerOperationRestore)
	s.await(t, other, done(corev1beta1.LastOperationTypeRestore))
	s.fulfilled(t, other)
	if s.Restored != nil {
		s.Restored(t, other)
	}
	s.delete(t, other)
}

// done checks that an operation has succeeded, as gardenlet does.
func done(typ corev1beta1.LastOperationType) func(extensionsv1alpha1.Object) error {
	return func(obj extensionsv1alpha1.Object) error {
		status := obj.GetExtensionStatus()
		last := status.GetLastOperation()
		switch {
		case obj.GetAnnotations()[constants.GardenerOperation] != "":
			return errors.New("the annotation gardener.cloud/operation is not removed")
		case last == nil:
			return errors.New("there is no last operation")
		case status.GetLastError() != nil:
			return fmt.Errorf("%s: %s", last.State, status.GetLastError().Description)
		case last.Type != typ || last.State != corev1beta1.LastOperationStateSucceeded:
			return fmt.Errorf("last operation is %s %s: %s", last.Type, last.State, last.Description)
		case status.GetObservedGeneration() != obj.GetGeneration():
			return fmt.Errorf("observed generation is %d, want %d", status.GetObservedGeneration(), obj.GetGeneration())
		case last.Progress != 100:
			return fmt.Errorf("progress is %d", last.Progress)
		}
		if bastion, ok := obj.(*extensionsv1alpha1.Bastion); ok {
			return reachable(bastion)
		}
		return nil
	}
}

// reachable checks that a bastion reports an address, without which gardenlet does not report it as ready.
func reachable(bastion *extensionsv1alpha1.Bastion) error {
	if ingress := bastion.Status.Ingress; ingress == nil || ingress.IP == "" && ingress.Hostname == "" {
		return errors.New("it has succeeded without an address in status.ingress")
	}
	return nil
}

func (s *run) create(t *testing.T, operation string, change func(extensionsv1alpha1.Object)) extensionsv1alpha1.Object {
	t.Helper()
	obj := s.New()
	if change != nil {
		change(obj)
	}
	annotate(obj, operation)
	if err := s.Client.Create(t.Context(), obj); err != nil {
		t.Fatalf("create: %v", err)
	}
	return obj
}

// request requests an operation.
func (s *run) request(t *testing.T, obj extensionsv1alpha1.Object, operation string) {
	t.Helper()
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	annotate(obj, operation)
	if err := s.Client.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatalf("request operation: %v", err)
	}
}

func annotate(obj client.Object, operation string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[constants.GardenerOperation] = operation
	annotations[constants.GardenerTimestamp] = time.Now().UTC().Format(time.RFC3339Nano)
	obj.SetAnnotations(annotations)
}

func (s *run) delete(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	if err := s.Client.Delete(t.Context(), obj); client.IgnoreNotFound(err) != nil {
		t.Fatalf("delete: %v", err)
	}
	s.await(t, obj, nil)
}

func (s *run) fulfilled(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	if s.Fulfilled != nil {
		s.Fulfilled(t, obj)
	}
}

func (s *run) gone(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	if s.Gone != nil {
		s.Gone(t, obj)
	}
}

// await waits until a check of an object returns nil, and reads the object. Without a check, it waits until the object is gone.
func (s *run) await(t *testing.T, obj extensionsv1alpha1.Object, check func(extensionsv1alpha1.Object) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Timeout)
	defer cancel()
	changes := s.watch(ctx, t, obj)
	defer changes.Stop()
	key, reason := client.ObjectKeyFromObject(obj), errors.New("it still exists")
	for {
		err := s.Client.Get(ctx, key, obj)
		switch {
		case apierrors.IsNotFound(err) && check == nil:
			return
		case err != nil && ctx.Err() == nil:
			t.Fatalf("read: %v", err)
		case err == nil && check == nil:
			reason = stillThere(obj)
		case err == nil:
			if reason = check(obj); reason == nil {
				return
			}
		}
		select {
		case _, ok := <-changes.ResultChan():
			if !ok && ctx.Err() == nil {
				changes = s.watch(ctx, t, obj)
			}
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			t.Fatalf("timed out after %s: %v", s.Timeout, reason)
		}
	}
}

// stillThere says what keeps an object that is being deleted.
func stillThere(obj extensionsv1alpha1.Object) error {
	err := fmt.Errorf("it still exists, with finalizers %v", obj.GetFinalizers())
	if last := obj.GetExtensionStatus().GetLastOperation(); last != nil {
		return fmt.Errorf("%w; last operation is %s %s: %s", err, last.Type, last.State, last.Description)
	}
	return err
}

// watch returns the events of one object, first one for its current state.
func (s *run) watch(ctx context.Context, t *testing.T, obj extensionsv1alpha1.Object) watch.Interface {
	t.Helper()
	gvk, err := apiutil.GVKForObject(obj, s.Client.Scheme())
	if err != nil {
		t.Fatal(err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	changes, err := s.Client.Watch(ctx, list, client.InNamespace(obj.GetNamespace()), &client.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, obj.GetName()),
	})
	if err != nil {
		t.Fatalf("watch: %v", err)
	}
	return changes
}
