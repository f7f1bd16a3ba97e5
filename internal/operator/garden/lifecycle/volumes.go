package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/secrets"
)

// dataKeys are the credentials without which the data in etcd is of no use: what API servers encrypt cannot be read, and no token is valid any more.
var dataKeys = []string{
	constants.SecretNameETCDEncryptionKey, operatorv1alpha1.SecretNameGardenerETCDEncryptionKey, constants.SecretNameServiceAccountKey,
}

// checkVolumes returns an error if etcd would start with data whose keys do not exist any more. The volumes of a deleted Garden stay, its credentials do
// not; with new ones, Secrets of the former virtual cluster could not be read, and API servers would not start.
func (s *state) checkVolumes(ctx context.Context) error {
	name := etcd.Name(instance.VirtualGarden, etcd.Main)
	volumes := &metav1.PartialObjectMetadataList{}
	volumes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
	if err := s.RuntimeAPI.List(ctx, volumes, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{druidv1alpha1.LabelPartOfKey: name}); err != nil {
		return fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	if len(volumes.Items) == 0 {
		return nil
	}
	missing, err := s.missingDataKeys(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	// In the first run for a Garden, etcd may have got its volumes before the keys were generated. There is no data then.
	if c := s.garden.Status.Credentials; c == nil || c.EncryptionAtRest == nil {
		err := s.RuntimeAPI.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, &druidv1alpha1.Etcd{})
		if err == nil {
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Etcd %q: %w", name, err)
		}
	}
	var names []string
	for i := range volumes.Items {
		names = append(names, volumes.Items[i].Name)
	}
	slices.Sort(names)
	return errorcode.With(fmt.Errorf(
		"PersistentVolumeClaims of a former etcd exist in namespace %q (%s), but no Secrets of credentials %s, without which their data cannot be used: "+
			"delete these PersistentVolumeClaims to begin without data, or restore the Secrets, with their labels",
		constants.GardenNamespace, strings.Join(names, ", "), strings.Join(missing, ", "),
	), corev1beta1.ErrorConfigurationProblem)
}

// missingDataKeys returns those of dataKeys for which there is no Secret: neither one that is in use, nor one whose data is to be used.
func (s *state) missingDataKeys(ctx context.Context) ([]string, error) {
	exists := map[string]bool{}
	for _, by := range []struct {
		labels client.ListOption
		name   string
	}{
		{client.MatchingLabels{
			secrets.LabelKeyManagedBy: secrets.LabelValueSecretsManager, secrets.LabelKeyManagerIdentity: operatorv1alpha1.SecretManagerIdentityOperator,
		}, secrets.LabelKeyName},
		{client.HasLabels{secrets.LabelKeyUseDataForName}, secrets.LabelKeyUseDataForName},
	} {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := s.RuntimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace), by.labels); err != nil {
			return nil, fmt.Errorf("list Secrets with credentials: %w", err)
		}
		for i := range list.Items {
			exists[list.Items[i].Labels[by.name]] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(dataKeys), func(name string) bool { return exists[name] }), nil
}
