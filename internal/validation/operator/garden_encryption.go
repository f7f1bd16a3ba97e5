package operator

import (
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// encryptionUpdate refuses a change of the encryption configuration while the encryption key is being rotated or the last change is not
// finished: objects are rewritten in both cases, and it must be clear with which key. The provider stays that of the key.
func encryptionUpdate(garden, old *operatorv1alpha1.Garden, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	apiServer, gardener := garden.EncryptionConfigs()
	oldAPIServer, oldGardener := old.EncryptionConfigs()
	for _, config := range []struct {
		new, old                 *corev1beta1.EncryptionConfig
		newProvider, oldProvider corev1beta1.EncryptionProviderType
		path                     *field.Path
	}{
		{apiServer, oldAPIServer, garden.EncryptionProvider(), old.EncryptionProvider(), path.Child("kubernetes", "kubeAPIServer", "encryptionConfig")},
		{
			gardener, oldGardener, garden.GardenerEncryptionProvider(), old.GardenerEncryptionProvider(),
			path.Child("gardener", "gardenerAPIServer", "encryptionConfig"),
		},
	} {
		if config.newProvider != config.oldProvider {
			errs = append(errs, field.Forbidden(config.path.Child("provider", "type"),
				fmt.Sprintf("cannot be changed from %s: rewriting what is stored with another provider is not supported yet", config.oldProvider)))
		}
		if apiequality.Semantic.DeepEqual(encrypted(config.new), encrypted(config.old)) {
			continue
		}
		switch phase := phases(garden)[encryptionKey]; {
		case phase != "" && phase != corev1beta1.RotationCompleted:
			errs = append(errs, field.Forbidden(config.path, fmt.Sprintf("cannot be changed while the encryption key is being rotated (%s)", phase)))
		case startsEncryptionKeyRotation(old):
			errs = append(errs, field.Forbidden(config.path, "cannot be changed while the encryption key is about to be rotated"))
		case encryptionUnfinished(old):
			errs = append(errs, field.Forbidden(config.path.Child("resources"), "cannot be changed before the first reconciliation or an earlier change is finished"))
		}
	}
	return errs
}

// encrypted is the set of resources of a configuration.
func encrypted(config *corev1beta1.EncryptionConfig) sets.Set[string] {
	if config == nil {
		return sets.New[string]()
	}
	return sets.New(config.Resources...)
}

// encryptionUnfinished reports whether what is stored is not yet encrypted as in the spec. Before the first reconciliation nothing is stored.
func encryptionUnfinished(garden *operatorv1alpha1.Garden) bool {
	if c := garden.Status.Credentials; c != nil && c.EncryptionAtRest != nil {
		return encryptionChanges(garden)
	}
	return garden.Status.LastOperation != nil
}

// encryptionChanges reports whether what the spec encrypts differs from what was encrypted at the end of the last successful reconciliation.
func encryptionChanges(garden *operatorv1alpha1.Garden) bool {
	c := garden.Status.Credentials
	return c != nil && c.EncryptionAtRest != nil && !sets.New(garden.EncryptedResources()...).Equal(sets.New(c.EncryptionAtRest.Resources...))
}

// startsEncryptionKeyRotation reports whether the annotation has an operation that starts a rotation of the encryption key.
func startsEncryptionKeyRotation(garden *operatorv1alpha1.Garden) bool {
	for operation := range strings.SplitSeq(garden.Annotations[constants.GardenerOperation], constants.OperationsSeparator) {
		if startsRotation(operation, encryptionKey) {
			return true
		}
	}
	return false
}
