package gardenlet

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/skew"
)

// checkSkew refuses to act if the gardenlet is too new for the garden. A garden that does not say its version is not checked.
func checkSkew(ctx context.Context, garden client.Reader, version string, log logr.Logger) error {
	info := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: constants.GardenerSystemPublicNamespace, Name: constants.ConfigMapNameGardenerInfo}
	if err := garden.Get(ctx, key, info); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		log.Info("Version of the garden is not checked, as it does not publish it", "configMap", key.String(), "reason", err.Error())
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %q of the garden: %w", key, err)
	}
	server, err := gardenerinfo.Read(info)
	if err != nil {
		return fmt.Errorf("read ConfigMap %q of the garden: %w", key, err)
	}
	theirs, err := semver.NewVersion(server.Version)
	if err != nil {
		log.Info("Version of the garden is not checked, as it cannot be read", "version", server.Version)
		return nil
	}
	own, err := semver.NewVersion(version)
	if err != nil {
		log.Info("Version of the garden is not checked, as that of this process cannot be read", "version", version)
		return nil
	}
	if late := skew.Late(theirs, own); late != nil {
		log.Info("Working with a garden that is too new for this gardenlet", "reason", late.Error())
	}
	return skew.Agent(theirs, own)
}
