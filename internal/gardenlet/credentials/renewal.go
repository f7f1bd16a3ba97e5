package credentials

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// ErrRestart says that there are new credentials, which the process uses after a restart.
var ErrRestart = errors.New("the kubeconfig for the garden is new; starting again to use it")

// tryAgain is when a renewal that failed is tried again. There are days left, or at least minutes.
const tryAgain = time.Minute

// Keep renews a client certificate when its time has come or somebody asks for it, and returns ErrRestart as soon as the Secret has
// another kubeconfig than the one in use, whoever wrote it. Without a Secret to keep it in, it only waits for the end of the context.
func Keep(ctx context.Context, v Values, access *Access) error {
	if v.Connection.KubeconfigSecret == nil {
		<-ctx.Done()
		return nil
	}
	log := logf.FromContext(ctx)
	for {
		waitCtx, cancel := context.WithCancelCause(ctx)
		stop := func() bool { return false }
		if due := v.due(access.Certificate); due != nil {
			log.V(1).Info("Planning renewal of the client certificate", "at", due.UTC())
			stop = v.Clock.AfterFunc(due.Sub(v.Clock.Now()), func() { cancel(errDue) }).Stop
		}
		err := v.awaitChange(waitCtx, access)
		stop()
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil
		case !errors.Is(err, errWished) && !errors.Is(context.Cause(waitCtx), errDue):
			return err
		}
		log.Info("Renewing client certificate")
		if _, err := v.renew(ctx, access); err == nil {
			return ErrRestart
		} else if ctx.Err() != nil {
			return nil
		} else if access.Certificate.expired(v.Clock.Now()) {
			return fmt.Errorf("renew client certificate, which has expired: %w", err)
		} else {
			log.Error(err, "Failed renewing client certificate, will try again", "in", tryAgain)
		}
		select {
		case <-v.Clock.After(tryAgain):
		case <-ctx.Done():
			return nil
		}
	}
}

var (
	errDue    = errors.New("the certificate is due for renewal")
	errWished = errors.New("somebody asked for a renewal")
)

// due is when a certificate is to be renewed. Nil for one that is none.
func (v Values) due(certificate *Validity) *time.Time {
	if certificate == nil {
		return nil
	}
	return new(renewalTime(*certificate, v.Connection.KubeconfigValidity, rand.Float64())) //nolint:gosec // spreads load, keeps no secret
}

// renewalTime is between two shares of the lifetime; where, is up to a number from 0 to 1.
func renewalTime(certificate Validity, config *gardenletconfigv1alpha1.KubeconfigValidity, luck float64) time.Time {
	lowest, highest := float64(*config.AutoRotationJitterPercentageMin), float64(*config.AutoRotationJitterPercentageMax)
	share := (lowest + (highest-lowest)*luck) / 100
	return certificate.NotBefore.Add(time.Duration(share * float64(certificate.NotAfter.Sub(certificate.NotBefore))))
}

// awaitChange returns ErrRestart if the Secret has another certificate than the one in use, errWished if somebody asks for one.
func (v Values) awaitChange(ctx context.Context, access *Access) error {
	key := v.secretKey(v.Connection.KubeconfigSecret)
	var found error
	err := kube.Await(ctx, v.SeedClient, &corev1.SecretList{}, func(secrets []*corev1.Secret) error {
		if len(secrets) == 0 || len(secrets[0].Data[Kubeconfig]) == 0 {
			return errUnchanged
		}
		switch {
		case v.differs(secrets[0].Data[Kubeconfig], access):
			found = ErrRestart
		case wished(secrets[0]):
			found = errWished
		default:
			return errUnchanged
		}
		return nil
	}, nil, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
	if found != nil {
		return found
	}
	return err
}

var errUnchanged = errors.New("the kubeconfig is the one in use")

// differs tells whether a kubeconfig is a working one other than that in use.
func (v Values) differs(kubeconfig []byte, access *Access) bool {
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return false // nothing to start again with
	}
	other, err := newAccess(config)
	if err != nil || other.Certificate.expired(v.Clock.Now()) {
		return false
	}
	a, b := config, access.Config
	return string(a.CertData) != string(b.CertData) || string(a.CAData) != string(b.CAData) || a.Host != b.Host || a.BearerToken != b.BearerToken
}
