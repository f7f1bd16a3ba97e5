package installation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/pkg/managedresource"
)

const fieldManager = "gardener-operator"

// waiting is the error of a pass that can go on only after an event.
type waiting struct {
	// deletion is whether it waits until an object is deleted, otherwise for the Garden.
	deletion bool
	message  string
}

func (w *waiting) Error() string { return w.message }

type reconciler struct {
	Values
	runtimeCache client.Client
	// runtimeAPI reads Extensions, and Secrets, of which the cache has only the metadata.
	runtimeAPI client.Reader
	// kinds are those of the objects in ManagedResources.
	kinds    *runtime.Scheme
	charts   *chart.Puller
	recorder events.EventRecorder
}

// pullError says that a chart cannot be pulled, such as when its registry is down. What is installed stays as it is.
type pullError struct{ error }

func (e *pullError) Unwrap() error { return e.error }

// onlyPulls reports whether all that failed was to pull charts.
func onlyPulls(err error) bool {
	return only(err, func(err error) bool {
		var pull *pullError
		return errors.As(err, &pull)
	})
}

// onlyInvalid reports whether only a change can fix all that failed.
func onlyInvalid(err error) bool {
	return only(err, func(err error) bool { return errors.Is(err, chart.ErrInvalid) })
}

// only reports whether a check holds for all errors that are joined. errors.Is and errors.As find one of several.
func only(err error, check func(error) bool) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(joined.Unwrap(), func(e error) bool { return !only(e, check) })
	}
	return check(err)
}

// pass is one reconciliation of an Extension.
type pass struct {
	*reconciler
	e      *operatorv1alpha1.Extension
	garden *operatorv1alpha1.Garden
	// going is whether all parts are removed.
	going bool
	// data is what values refer to, once it has been read.
	data *chart.Resources
}

// Reconcile installs an extension, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, e *operatorv1alpha1.Extension) (reconcile.Result, error) {
	garden, err := extension.Garden(ctx, r.runtimeCache)
	if err != nil {
		return reconcile.Result{}, err
	}
	plan := decide(e, garden)
	p := &pass{reconciler: r, e: e, garden: garden, going: plan.going}
	if plan.installs() && e.DeletionTimestamp == nil { // API servers refuse new finalizers of what is being deleted
		if err := kube.AddFinalizer(ctx, r.runtimeCache, e, operatorv1alpha1.FinalizerName); err != nil {
			return kube.Result(err)
		}
	}
	// The finalizer has changed the Extension, and the cache may not have the status yet that the last pass has written.
	if err := r.runtimeAPI.Get(ctx, client.ObjectKeyFromObject(e), e); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if plan.going && !controllerutil.ContainsFinalizer(e, operatorv1alpha1.FinalizerName) {
		if e.DeletionTimestamp != nil {
			return reconcile.Result{}, nil
		}
		return kube.Result(r.report(ctx, e, absent(e, garden)))
	}
	err = p.run(ctx, plan)
	var wait *waiting
	switch {
	case errors.As(err, &wait):
		return kube.Result(r.report(ctx, e, pending(e, wait)))
	case err != nil && kube.Routine(err):
		return kube.Result(err)
	case err != nil:
		status := failed(e, plan, err)
		if onlyPulls(err) && upToDate(e) && r.allThere(ctx, e, plan) {
			status = stays(plan, err)
			r.warn(e, status)
		}
		statusErr := r.report(ctx, e, status)
		if statusErr == nil && onlyInvalid(err) {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		if statusErr != nil && !kube.Routine(statusErr) {
			err = errors.Join(err, statusErr)
		}
		return reconcile.Result{}, err
	case plan.going && plan.runtime != remove:
		return kube.Result(r.report(ctx, e, inRuntime()))
	case plan.going:
		if err := r.report(ctx, e, deleted()); err != nil {
			return kube.Result(err)
		}
		return kube.Result(kube.RemoveFinalizer(ctx, r.runtimeCache, e, operatorv1alpha1.FinalizerName))
	case plan.waits():
		return kube.Result(r.report(ctx, e, pending(e, &waiting{message: "Waiting until the Garden is reconciled."})))
	}
	return kube.Result(r.report(ctx, e, succeeded()))
}

// allThere reports whether all parts that are to be installed were installed before.
func (r *reconciler) allThere(ctx context.Context, e *operatorv1alpha1.Extension, plan plan) bool {
	for name, what := range map[string]action{
		extension.RuntimeManagedResource(e.Name): plan.runtime, extension.RegistrationManagedResource(e.Name): plan.registration,
		extension.AdmissionVirtualManagedResource(e.Name): plan.admissionVirtual, extension.AdmissionRuntimeManagedResource(e.Name): plan.admissionRuntime,
	} {
		if what == install && r.runtimeCache.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, &resourcesv1alpha1.ManagedResource{}) != nil {
			return false
		}
	}
	return true
}

// run does what is planned. When all parts are removed, the registration is removed first, as seeds may need the extension until then, and the
// extension itself last. As long as objects need it, it is kept up to date, whether the other parts can be removed or not.
func (p *pass) run(ctx context.Context, plan plan) error {
	name := p.e.Name
	removeAdmission := func(ctx context.Context) error {
		if plan.admissionRuntime == remove {
			if err := p.remove(ctx, extension.AdmissionRuntimeManagedResource(name), accessSecret(p.e)); err != nil {
				return err
			}
		}
		if plan.admissionVirtual == remove {
			return p.remove(ctx, extension.AdmissionVirtualManagedResource(name))
		}
		return nil
	}
	removeRegistration := func(ctx context.Context) error {
		if plan.registration == remove {
			return p.remove(ctx, extension.RegistrationManagedResource(name))
		}
		return nil
	}
	removeRuntime := func(ctx context.Context) error {
		if plan.runtime == remove {
			return p.remove(ctx, extension.RuntimeManagedResource(name), runtimeNamespace(p.e, nil))
		}
		return nil
	}
	var errs []error
	if plan.going {
		if plan.runtime == install {
			errs = append(errs, p.installRuntime(ctx))
		}
		for _, step := range []func(context.Context) error{removeRegistration, removeAdmission, removeRuntime} {
			if err := step(ctx); err != nil {
				errs = append(errs, err)
				break
			}
		}
		return first(errs)
	}
	// A part that waits or fails does not keep the others from being installed.
	for _, part := range []struct {
		action  action
		install func(context.Context) error
	}{
		{plan.runtime, p.installRuntime},
		{plan.admissionVirtual, p.installAdmissionVirtual},
		{plan.admissionRuntime, p.installAdmissionRuntime},
		{plan.registration, p.installRegistration},
	} {
		if part.action == install {
			errs = append(errs, part.install(ctx))
		}
	}
	for _, step := range []func(context.Context) error{removeRegistration, removeAdmission, removeRuntime} {
		errs = append(errs, step(ctx))
	}
	return first(errs)
}

// first returns errors without those that only wait, if there are any.
func first(errs []error) error {
	var failed []error
	var wait *waiting
	for _, err := range errs {
		if w := (*waiting)(nil); errors.As(err, &w) {
			if wait == nil {
				wait = w
			}
		} else if err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 || wait == nil {
		return errors.Join(failed...)
	}
	return wait
}

// installRuntime installs the extension itself in the runtime cluster.
func (p *pass) installRuntime(ctx context.Context) error {
	class := kube.Metadata(schedulingv1.SchemeGroupVersion.WithKind("PriorityClass"))
	if err := p.runtimeCache.Get(ctx, client.ObjectKey{Name: runtimePriorityClass}, class); apierrors.IsNotFound(err) {
		return &waiting{message: fmt.Sprintf("Waiting until the Garden creates PriorityClass %q.", runtimePriorityClass)}
	} else if err != nil {
		return fmt.Errorf("read PriorityClass %q: %w", runtimePriorityClass, err)
	}
	namespace := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := p.runtimeCache.Get(ctx, client.ObjectKey{Name: extension.RuntimeNamespace(p.e.Name)}, namespace); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read namespace %q: %w", extension.RuntimeNamespace(p.e.Name), err)
	} else if namespace.DeletionTimestamp != nil { // what is applied to it would be deleted too
		return namespaceDeletion(namespace.Name)
	}
	kubernetes, err := p.RuntimeVersion.ServerVersion()
	if err != nil {
		return fmt.Errorf("read version of the runtime cluster: %w", err)
	}
	objects, err := p.render(ctx, extension.Chart(p.e), p.e.Spec.Deployment.Extension.RuntimeClusterValues, runtimeValues(),
		extension.RuntimeNamespace(p.e.Name), *kubernetes, nil)
	if err != nil {
		return fmt.Errorf("extension in the runtime cluster: %w", err)
	}
	if err := kube.Apply(ctx, p.runtimeCache, fieldManager, runtimeNamespace(p.e, p.garden.Spec.RuntimeCluster.Provider.Zones)); err != nil {
		return err
	}
	return p.apply(ctx, extension.RuntimeManagedResource(p.e.Name), classRuntime, objects)
}

// installAdmissionVirtual installs the objects of the admission controller in the virtual garden.
func (p *pass) installAdmissionVirtual(ctx context.Context) error {
	kubernetes, err := virtualVersion(p.garden)
	if err != nil {
		return err
	}
	objects, err := p.render(ctx, extension.AdmissionVirtualChart(p.e), p.e.Spec.Deployment.Admission.Values, admissionVirtualValues(p.e),
		extension.VirtualNamespace(p.e.Name), kubernetes, nil)
	if err != nil {
		return fmt.Errorf("admission controller in the virtual garden: %w", err)
	}
	return p.apply(ctx, extension.AdmissionVirtualManagedResource(p.e.Name), "", append(objects, virtualNamespace(p.e)))
}

// installAdmissionRuntime installs the admission controller, with access to the virtual garden.
func (p *pass) installAdmissionRuntime(ctx context.Context) error {
	genericKubeconfig := p.garden.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]
	if genericKubeconfig == "" {
		return &waiting{message: fmt.Sprintf("Waiting until the Garden has annotation %s.", extensionsv1alpha1.AnnotationGenericKubeconfigSecretName)}
	}
	kubernetes, err := p.RuntimeVersion.ServerVersion()
	if err != nil {
		return fmt.Errorf("read version of the runtime cluster: %w", err)
	}
	objects, err := p.render(ctx, extension.AdmissionRuntimeChart(p.e), p.e.Spec.Deployment.Admission.Values, admissionRuntimeValues(p.e),
		constants.GardenNamespace, *kubernetes, func(spec *corev1.PodSpec) { injectKubeconfig(spec, genericKubeconfig, p.e) })
	if err != nil {
		return fmt.Errorf("admission controller in the runtime cluster: %w", err)
	}
	if err := kube.Apply(ctx, p.runtimeCache, fieldManager, accessSecret(p.e)); err != nil {
		return err
	}
	return p.apply(ctx, extension.AdmissionRuntimeManagedResource(p.e.Name), classRuntime, objects)
}

// installRegistration registers the extension in the virtual garden, with copies of what the registration refers to.
func (p *pass) installRegistration(ctx context.Context) error {
	objects := registration(p.e)
	for _, s := range copied(p.e) {
		key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: s.Name}
		var err error
		switch s.Kind {
		case "Secret":
			secret := &corev1.Secret{}
			err = p.runtimeAPI.Get(ctx, key, secret)
			objects = append(objects, &corev1.Secret{ObjectMeta: copyMeta(p.e, s), Type: secret.Type, Data: secret.Data})
		case "ConfigMap":
			configMap := &corev1.ConfigMap{}
			err = p.runtimeAPI.Get(ctx, key, configMap)
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: copyMeta(p.e, s), Data: configMap.Data, BinaryData: configMap.BinaryData})
		default:
			err = fmt.Errorf("%w: kind %q is not supported, only Secret and ConfigMap", chart.ErrInvalid, s.Kind)
		}
		if apierrors.IsNotFound(err) {
			err = errors.New("not found") // it is no routine
		}
		if err != nil {
			return fmt.Errorf("registration: read %s %q: %w", s.Kind, key, err)
		}
	}
	return p.apply(ctx, extension.RegistrationManagedResource(p.e.Name), "", objects)
}

// render returns the objects of a chart. The function changes the pods of workloads; it may be nil.
func (p *pass) render(
	ctx context.Context, repository *gardencorev1.OCIRepository, raw *apiextensionsv1.JSON, own map[string]any,
	namespace string, kubernetes version.Info, pods func(*corev1.PodSpec),
) ([]client.Object, error) {
	if p.data == nil {
		data, err := chart.ReadResources(ctx, p.runtimeAPI, extension.Resources(p.e))
		if err != nil {
			return nil, err
		}
		p.data = data
	}
	all, err := values(raw, p.data, own)
	if err != nil {
		return nil, fmt.Errorf("%w: values: %w", chart.ErrInvalid, err)
	}
	archive, err := p.charts.PullFor(ctx, p.runtimeAPI, repository)
	if apierrors.IsNotFound(err) {
		return nil, errors.New(err.Error()) // a Secret for the registry is missing, which is no routine
	} else if err != nil {
		return nil, &pullError{err}
	}
	rendered, err := helm.Render(archive, helm.Release{Name: p.e.Name, Namespace: namespace, Kubernetes: kubernetes, Values: all})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chart.ErrInvalid, p.data.Withheld(err))
	}
	objects := make([]client.Object, 0, len(rendered))
	for _, object := range rendered {
		if pods != nil {
			if err := chart.ChangePods(object, pods); err != nil {
				return nil, fmt.Errorf("%w: %w", chart.ErrInvalid, p.data.Withheld(&helm.Error{At: "pods of a " + object.GetKind(), Err: err}))
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// apply writes a ManagedResource with objects.
func (p *pass) apply(ctx context.Context, name, class string, objects []client.Object) error {
	labels := map[string]string{operatorv1alpha1.LabelExtensionName: p.e.Name}
	if name == extension.AdmissionRuntimeManagedResource(p.e.Name) {
		labels[labelOrigin] = fieldManager
	}
	managed, err := managedresource.Objects(p.kinds, managedresource.Values{
		Namespace: constants.GardenNamespace, Name: name, Class: class, Labels: labels,
	}, objects...)
	if err != nil {
		return err
	}
	// Those of former versions are deleted by the garbage collector; this label is for the last one, when the ManagedResource is deleted.
	for _, object := range managed {
		if secret, ok := object.(*corev1.Secret); ok {
			secret.Labels[operatorv1alpha1.LabelExtensionName] = p.e.Name
		}
	}
	return kube.Apply(ctx, p.runtimeCache, fieldManager, managed...)
}

// namespaceDeletion is the error of a pass that waits until a namespace is deleted. The watch triggers.
func namespaceDeletion(name string) error {
	return &waiting{deletion: true, message: fmt.Sprintf("Waiting until namespace %q is deleted.", name)}
}

// remove deletes a ManagedResource, and when it is gone, the Secrets with its manifests and further objects. It waits until the ManagedResource and a
// namespace are deleted.
func (p *pass) remove(ctx context.Context, name string, further ...client.Object) error {
	mr, key := &resourcesv1alpha1.ManagedResource{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}
	reader := client.Reader(p.runtimeCache)
	if p.going {
		reader = p.runtimeAPI // the cache may miss one that was created a moment ago, and the finalizer is removed after this
	}
	err := reader.Get(ctx, key, mr)
	if err == nil {
		if mr.DeletionTimestamp == nil {
			logf.FromContext(ctx).Info("Deleting ManagedResource", "managedResource", key)
			if err := p.runtimeCache.Delete(ctx, mr); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete ManagedResource %q: %w", key, err)
			}
		}
		return &waiting{deletion: true, message: fmt.Sprintf("Waiting until ManagedResource %q is deleted.", key)} // the watch triggers
	}
	// Without the Garden, the kind may not be defined.
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return fmt.Errorf("read ManagedResource %q: %w", key, err)
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.runtimeCache.List(ctx, secrets, client.InNamespace(key.Namespace), client.MatchingLabels{operatorv1alpha1.LabelExtensionName: p.e.Name}); err != nil {
		return fmt.Errorf("list Secrets of ManagedResource %q: %w", key, err)
	}
	for i := range secrets.Items {
		if strings.HasPrefix(secrets.Items[i].Name, managedresource.SecretNamePrefix+name+"-") {
			further = append(further, &secrets.Items[i])
		}
	}
	for _, object := range further {
		if err := p.deleteExisting(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// deleteExisting deletes an object that is in the cache. Most passes find nothing to delete. It waits until a namespace is deleted.
func (p *pass) deleteExisting(ctx context.Context, object client.Object) error {
	kind := "Secret"
	if _, ok := object.(*corev1.Namespace); ok {
		kind = "Namespace"
	}
	found, key := kube.Metadata(corev1.SchemeGroupVersion.WithKind(kind)), client.ObjectKeyFromObject(object)
	if err := p.runtimeCache.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	if found.DeletionTimestamp == nil {
		logf.FromContext(ctx).Info("Deleting "+kind, "object", key)
		if err := p.runtimeCache.Delete(ctx, found); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %q: %w", kind, key, err)
		}
	}
	if kind == "Namespace" {
		return namespaceDeletion(key.Name)
	}
	return nil
}
