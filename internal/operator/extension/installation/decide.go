package installation

import (
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/operator/extension"
)

// action is what is done with a part of an extension.
type action string

const (
	// leave leaves a part as it is: it is not known yet whether it is needed, or it has to stay although nothing is installed any more.
	leave action = "leave"
	// install installs a part, or updates it.
	install action = "install"
	// remove removes a part, if it is there.
	remove action = "remove"
)

// plan is what is done with the parts of an extension.
type plan struct {
	// runtime is the extension itself in the runtime cluster.
	runtime action
	// admissionVirtual and admissionRuntime are its admission controller in both clusters.
	admissionVirtual, admissionRuntime action
	// registration is its registration in the virtual garden.
	registration action
	// going is whether all parts are removed, as the Extension or the Garden is deleted: the extension itself when no object needs it any more.
	going bool
}

// installs reports whether a part is installed.
func (p plan) installs() bool {
	return p.runtime == install || p.admissionVirtual == install || p.admissionRuntime == install || p.registration == install
}

// waits reports whether a part waits for the Garden.
func (p plan) waits() bool {
	return p.admissionVirtual == leave || p.admissionRuntime == leave || p.registration == leave
}

// reconciled reports whether the last operation of a Garden has brought up its virtual garden.
func reconciled(garden *operatorv1alpha1.Garden) bool {
	last := garden.Status.LastOperation
	return last != nil && last.Type == corev1beta1.LastOperationTypeReconcile && last.State == corev1beta1.LastOperationStateSucceeded && last.Progress == 100
}

// decide returns what is done with the parts of an extension. Without a Garden, garden is nil.
func decide(e *operatorv1alpha1.Extension, garden *operatorv1alpha1.Garden) plan {
	if e.DeletionTimestamp != nil || garden == nil || garden.DeletionTimestamp != nil {
		p := plan{runtime: remove, admissionVirtual: remove, admissionRuntime: remove, registration: remove, going: true}
		// Objects that the extension is responsible for cannot be deleted without it.
		if requiredRuntime(e) == corev1beta1.ConditionTrue {
			p.runtime = leave
			if garden != nil && extension.Chart(e) != nil {
				p.runtime = install // so that a broken extension can be repaired
			}
		}
		return p
	}
	p := plan{runtime: remove}
	switch required := requiredRuntime(e); {
	case required == corev1beta1.ConditionTrue && extension.Chart(e) != nil:
		p.runtime = install
	case required != corev1beta1.ConditionFalse: // objects may need what is installed, also if there is no chart any more
		p.runtime = leave
	}
	virtual := func(given bool) action {
		switch {
		case !given:
			return remove
		case reconciled(garden):
			return install
		}
		return leave // the virtual garden may not be up
	}
	p.admissionVirtual = virtual(extension.AdmissionVirtualChart(e) != nil)
	p.admissionRuntime = virtual(extension.AdmissionRuntimeChart(e) != nil)
	p.registration = virtual(extension.Registered(e))
	return p
}
