package gardenlet

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/gardenerinfo"
	"gardener.cloud/gardener/internal/skew"
)

// checkSkew refuses to act if the gardenlet is too new for the garden. A garden that does not say its version is not checked.
func checkSkew(ctx context.Context, garden client.Reader, version string, log logr.Logger) error {
	theirs, err := gardenerinfo.Version(ctx, garden)
	if unreadable := (*skew.UnreadableError)(nil); apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || errors.As(err, &unreadable) {
		log.Info("Version of the garden is not checked, as it does not publish it", "reason", err.Error())
		return nil
	} else if err != nil {
		return err
	}
	own, err := skew.Parse(version)
	if err != nil {
		log.Info("Version of the garden is not checked, as that of this process cannot be read", "reason", err.Error())
		return nil //nolint:nilerr // documented
	}
	if late := skew.Late(theirs, own); late != nil {
		log.Info("Working with a garden that is too new for this gardenlet", "reason", late.Error())
	}
	return skew.Agent(theirs, own)
}
