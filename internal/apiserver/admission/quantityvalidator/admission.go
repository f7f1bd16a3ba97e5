// Package quantityvalidator refuses quantities that could take minutes to compare, before anything compares them.
//
// Bodies with those that take long to parse are refused before they are decoded. For others, it has to be known what is a quantity: a short
// commit may look like one.
package quantityvalidator

import (
	"context"
	"io"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube/quantities"
)

// Name is the name of the plugin.
const Name = "QuantityValidator"

// Register registers the plugin.
func Register(plugins *admission.Plugins) {
	plugins.Register(Name, func(io.Reader) (admission.Interface, error) { return New(), nil })
}

// New returns the plugin.
func New() *Plugin { return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)} }

// Plugin refuses objects. It is a mutating plugin, as those would compare quantities.
type Plugin struct {
	*admission.Handler
	// withQuantities is whether values of a type can contain quantities.
	withQuantities sync.Map
}

var _ admission.MutationInterface = &Plugin{}

// Admit implements admission.MutationInterface.
func (p *Plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := a.GetObject().(client.Object)
	if !ok {
		return nil
	}
	errs := p.check(reflect.ValueOf(obj), nil)
	if shoot, ok := obj.(*corev1beta1.Shoot); ok {
		errs = append(errs, volumes(shoot)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

func (p *Plugin) check(v reflect.Value, path *field.Path) (errs field.ErrorList) {
	if !p.hasQuantities(v.Type()) {
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return p.check(v.Elem(), path)
		}
	case reflect.Struct:
		if q, ok := v.Interface().(resource.Quantity); ok {
			return refuse(q, path)
		}
		for f := range v.Type().Fields() {
			if !f.IsExported() {
				continue
			}
			inner := path
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				inner = path.Child(name)
			}
			errs = append(errs, p.check(v.FieldByIndex(f.Index), inner)...)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			errs = append(errs, p.check(v.Index(i), path.Index(i))...)
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			errs = append(errs, p.check(value, path.Key(key.String()))...)
		}
	}
	return errs
}

func (p *Plugin) hasQuantities(t reflect.Type) bool {
	if known, ok := p.withQuantities.Load(t); ok {
		return known.(bool)
	}
	has := contains(t, map[reflect.Type]bool{})
	p.withQuantities.Store(t, has)
	return has
}

func contains(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return contains(t.Elem(), seen)
	case reflect.Struct:
		if t == reflect.TypeFor[resource.Quantity]() {
			return true
		}
		for f := range t.Fields() {
			if f.IsExported() && contains(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// volumes checks the sizes of volumes, which are texts.
func volumes(shoot *corev1beta1.Shoot) (errs field.ErrorList) {
	check := func(size string, path *field.Path) {
		if q, err := resource.ParseQuantity(size); err == nil {
			errs = append(errs, refuse(q, path.Child("size"))...)
		}
	}
	for i, worker := range shoot.Spec.Provider.Workers {
		path := field.NewPath("spec", "provider", "workers").Index(i)
		if worker.Volume != nil {
			check(worker.Volume.VolumeSize, path.Child("volume"))
		}
		for j, volume := range worker.DataVolumes {
			check(volume.VolumeSize, path.Child("dataVolumes").Index(j))
		}
	}
	return errs
}

func refuse(q resource.Quantity, path *field.Path) field.ErrorList {
	if !quantities.Excessive(q) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, field.OmitValueType{}, "the exponent is too large")}
}
