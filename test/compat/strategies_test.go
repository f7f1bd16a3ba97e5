package compat

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/registry"
	registrycore "gardener.cloud/gardener/internal/apiserver/registry/core"
	"gardener.cloud/gardener/internal/apiserver/registry/kind"
	apiserverscheme "gardener.cloud/gardener/internal/apiserver/scheme"
	"gardener.cloud/gardener/internal/validation/core"
)

// strategy is how the API server prepares and validates objects of a kind.
type strategy struct{ kind.Strategies }

// served are the scheme and the strategies of the API server, by the Go type of the hub.
var served = func() (s struct {
	scheme     *runtime.Scheme
	strategies map[reflect.Type]strategy
},
) {
	scheme, err := apiserverscheme.New()
	if err != nil {
		panic(err)
	}
	s.scheme, s.strategies = scheme, map[reflect.Type]strategy{}
	settings := registry.Settings{Core: registrycore.Settings{Validation: core.Options{CloudProfileCapabilities: true}, Clock: clock.RealClock{}}}
	for gvk, all := range registry.Strategies(scheme, settings) {
		obj, err := scheme.New(gvk)
		if err != nil {
			panic(err)
		}
		s.strategies[reflect.TypeOf(obj).Elem()] = strategy{all}
	}
	return s
}()

// asUser is the context of a request in a namespace.
func asUser(ctx context.Context, namespace string) context.Context {
	return request.WithUser(request.WithNamespace(ctx, namespace), &user.DefaultInfo{Name: "replay"})
}

func (s strategy) create(ctx context.Context, obj runtime.Object) field.ErrorList {
	s.Create.PrepareForCreate(ctx, obj)
	return s.Create.Validate(ctx, obj)
}

func (s strategy) update(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	s.Update.PrepareForUpdate(ctx, obj, old)
	return s.Update.ValidateUpdate(ctx, obj, old)
}

func (s strategy) status(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	if s.Status == nil {
		return nil
	}
	s.Status.PrepareForUpdate(ctx, obj, old)
	return s.Status.ValidateUpdate(ctx, obj, old)
}

// answer does what the API server does with a request up to its admission plugins and its storage.
func answer(ctx context.Context, op string, obj, old runtime.Object) (code int, found [][2]string) {
	s, ok := served.strategies[reflect.TypeOf(obj).Elem()]
	if !ok {
		return 404, nil
	}
	if reflect.TypeOf(obj) != reflect.TypeOf(old) {
		return 400, nil // the request's path says which kind is meant
	}
	meta, oldMeta := metaOf(obj), metaOf(old)
	namespace := oldMeta.Namespace
	if namespace == "" && s.Create.NamespaceScoped() {
		namespace = metav1.NamespaceDefault
	}
	ctx = asUser(ctx, namespace)
	// The request's path says which object is meant.
	if op != "create" && meta.Name != oldMeta.Name {
		return 400, nil
	}
	admit(obj)
	meta.ManagedFields, oldMeta.ManagedFields = nil, nil
	var err error
	switch op {
	case "create":
		rest.FillObjectMetaSystemFields(meta)
		if meta.Name == "" && meta.GenerateName != "" {
			meta.Name = s.Create.GenerateName(meta.GenerateName)
		}
		err = rest.BeforeCreate(s.Create, ctx, obj)
	default:
		admit(old)
		update := s.Update
		if op == "status" {
			update = s.Status
		}
		if update == nil {
			return 404, nil
		}
		// The stored object has what the server gave it.
		oldMeta.Namespace, oldMeta.ResourceVersion, oldMeta.Generation, oldMeta.CreationTimestamp = namespace, "1", 1, metav1.Now()
		if !s.Create.NamespaceScoped() {
			oldMeta.Namespace = ""
		}
		meta.ResourceVersion = "1"
		before := old.DeepCopyObject()
		err = rest.BeforeUpdate(update, ctx, obj, old)
		if apiequality.Semantic.DeepEqual(obj, before) {
			return 200, nil // nothing changes, and what is stored was accepted before
		}
	}
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return 200, nil
	case errors.As(err, &status):
		answer := status.Status()
		return int(answer.Code), causesOf(&answer)
	}
	return 500, nil
}

func causesOf(status *metav1.Status) [][2]string {
	out := [][2]string{}
	if status.Details != nil {
		for _, cause := range status.Details.Causes {
			out = append(out, [2]string{string(cause.Type), cause.Field})
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(out)
}

// admit sets what admission plugins set before validation: versions and images of Shoots.
func admit(obj runtime.Object) {
	shoot, ok := obj.(*corev1beta1.Shoot)
	if !ok {
		return
	}
	patch := map[string]string{"": "1.36.1", "1": "1.36.1", "1.36": "1.36.1", "1.35": "1.35.4", "1.34": "1.34.7", "1.33": "1.33.11", "1.": "1.36.1"}
	if version, ok := patch[shoot.Spec.Kubernetes.Version]; ok {
		shoot.Spec.Kubernetes.Version = version
	}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		if worker.Machine.Image == nil {
			worker.Machine.Image = &corev1beta1.ShootMachineImage{Name: "corpus-os"}
		}
		if worker.Machine.Image.Version == nil || *worker.Machine.Image.Version == "" {
			worker.Machine.Image.Version = new("1.2.0")
		}
		if worker.Kubernetes != nil && worker.Kubernetes.Version != nil {
			if version, ok := patch[*worker.Kubernetes.Version]; ok {
				worker.Kubernetes.Version = &version
			}
		}
	}
	if dns := shoot.Spec.DNS; dns != nil && len(dns.Providers) > 0 && shoot.Spec.SeedName != nil &&
		!slices.ContainsFunc(dns.Providers, func(p corev1beta1.DNSProvider) bool { return p.Primary != nil && *p.Primary }) {
		dns.Providers[0].Primary = new(true)
	}
	if name := shoot.Spec.CloudProfileName; name != nil && *name != "" && shoot.Spec.CloudProfile == nil {
		shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: *name}
	}
}

func metaOf(obj runtime.Object) *metav1.ObjectMeta {
	return obj.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
}
