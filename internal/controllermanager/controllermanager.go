// Package controllermanager is the gardener-controller-manager: the controllers of the garden that need no seed.
package controllermanager

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/controllermanager/bastion"
	"gardener.cloud/gardener/internal/controllermanager/certificatesigningrequest"
	"gardener.cloud/gardener/internal/controllermanager/cloudprofile"
	"gardener.cloud/gardener/internal/controllermanager/controllerdeployment"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/extensionclusterrole"
	registrationfinalizer "gardener.cloud/gardener/internal/controllermanager/controllerregistration/finalizer"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/installation"
	"gardener.cloud/gardener/internal/controllermanager/credentials"
	"gardener.cloud/gardener/internal/controllermanager/credentialsbinding"
	"gardener.cloud/gardener/internal/controllermanager/event"
	"gardener.cloud/gardener/internal/controllermanager/exposureclass"
	"gardener.cloud/gardener/internal/controllermanager/index"
	"gardener.cloud/gardener/internal/controllermanager/namespacedcloudprofile"
	"gardener.cloud/gardener/internal/controllermanager/project"
	"gardener.cloud/gardener/internal/controllermanager/quota"
	"gardener.cloud/gardener/internal/controllermanager/reference"
	"gardener.cloud/gardener/internal/controllermanager/secretbinding"
	"gardener.cloud/gardener/internal/controllermanager/seed/care"
	"gardener.cloud/gardener/internal/controllermanager/seed/lifecycle"
	"gardener.cloud/gardener/internal/controllermanager/seed/secrets"
	"gardener.cloud/gardener/internal/controllermanager/shoot/conditions"
	"gardener.cloud/gardener/internal/controllermanager/shoot/hibernation"
	"gardener.cloud/gardener/internal/controllermanager/shoot/maintenance"
	shootquota "gardener.cloud/gardener/internal/controllermanager/shoot/quota"
	"gardener.cloud/gardener/internal/controllermanager/shoot/retry"
	"gardener.cloud/gardener/internal/controllermanager/shoot/statuslabel"
	"gardener.cloud/gardener/internal/controllermanager/shootstate/finalizer"
	"gardener.cloud/gardener/internal/controllermanager/uses"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "gardener-controller-manager"

// passTimeout is how long a controller may work on an object in one go. A pass makes a few dozen requests at most.
const passTimeout = 3 * time.Minute

// Config is the type of the configuration file.
type Config = controllermanagerconfigv1alpha1.ControllerManagerConfiguration

// Component describes the process.
func Component() process.Component[Config] {
	kinds := []process.AddToScheme{
		corev1beta1.AddToScheme, gardencorev1.AddToScheme, securityv1alpha1.AddToScheme, seedmanagementv1alpha1.AddToScheme,
		operationsv1alpha1.AddToScheme,
	}
	return process.Component[Config]{
		Name:  Name,
		Short: "Run the controllers of the garden that need no seed",
		Config: configfile.Kind[Config]{
			AddToScheme: controllermanagerconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateControllerManager,
		},
		Settings: func(c *Config) process.Settings {
			return process.Settings{
				Client: c.GardenClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics),
				Debugging: c.Debugging, FeatureGates: c.FeatureGates,
			}
		},
		Kinds:    kinds,
		Protobuf: kinds,
		Options: func(c *Config, options *manager.Options) {
			options.Cache.DefaultTransform = Trim
			options.Controller.CacheSyncTimeout = c.Controllers.CacheSyncTimeout.Duration
			options.Controller.ReconciliationTimeout = passTimeout
		},
		Wire: func(ctx context.Context, p *process.Process, c *Config) error {
			return AddControllers(ctx, p.Manager, &c.Controllers)
		},
	}
}

// Trim leaves out of cached objects what no controller reads, and what could be large or secret: who manages which field, and what was
// last applied. Everything else stays, as controllers patch lists as a whole.
var Trim toolscache.TransformFunc = func(in any) (any, error) {
	obj, err := cache.TransformStripManagedFields()(in)
	if err != nil {
		return nil, err
	}
	if accessor, err := meta.Accessor(obj); err == nil {
		delete(accessor.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}

// AddControllers adds all controllers to a manager. The configuration has its defaults.
func AddControllers(ctx context.Context, mgr manager.Manager, c *controllermanagerconfigv1alpha1.ControllerManagerControllerConfiguration) error {
	if err := errors.Join(uses.Add(ctx, mgr.GetFieldIndexer()), index.Add(ctx, mgr.GetFieldIndexer())); err != nil {
		return fmt.Errorf("add indexes: %w", err)
	}
	clk := clock.RealClock{}
	// In the order of the documentation.
	for _, controller := range []struct {
		name string
		add  func() error
	}{
		{"bastion", func() error { return bastion.Add(mgr, c.Bastion, clk) }},
		{"certificateSigningRequest", func() error {
			return certificatesigningrequest.Add(mgr, *c.CertificateSigningRequest.ConcurrentSyncs)
		}},
		{"cloudProfile", func() error { return cloudprofile.Add(mgr, *c.CloudProfile.ConcurrentSyncs) }},
		{"namespacedCloudProfile", func() error { return namespacedcloudprofile.Add(mgr, *c.NamespacedCloudProfile.ConcurrentSyncs) }},
		{"controllerDeployment", func() error {
			return controllerdeployment.Add(mgr, *c.ControllerDeployment.ConcurrentSyncs)
		}},
		{"controllerRegistration for seeds", func() error { return installation.AddSeed(mgr, *c.ControllerRegistration.ConcurrentSyncs) }},
		{"controllerRegistration for shoots", func() error { return installation.AddShoot(mgr, *c.ControllerRegistration.ConcurrentSyncs) }},
		{"finalizers of registrations", func() error { return registrationfinalizer.AddRegistration(mgr) }},
		{"finalizers of seeds", func() error { return registrationfinalizer.AddSeed(mgr) }},
		{"finalizers of self-hosted shoots", func() error { return registrationfinalizer.AddShoot(mgr) }},
		{"cluster roles of extensions", func() error { return extensionclusterrole.Add(mgr) }},
		{"credentialsBinding", func() error { return credentialsbinding.Add(mgr, *c.CredentialsBinding.ConcurrentSyncs) }},
		{"secretBinding", func() error { return secretbinding.Add(mgr, *c.SecretBinding.ConcurrentSyncs) }},
		{"references of bindings", func() error { //nolint:contextcheck // filters of events have none, and read from memory
			// One controller does for both what each has a setting for.
			return credentials.Add(mgr, max(*c.CredentialsBinding.ConcurrentSyncs, *c.SecretBinding.ConcurrentSyncs))
		}},
		{"event", func() error { return event.Add(mgr, c.Event, clk) }},
		{"exposureClass", func() error { return exposureclass.Add(mgr, *c.ExposureClass.ConcurrentSyncs) }},
		{"quota", func() error { return quota.Add(mgr, *c.Quota.ConcurrentSyncs) }},
		{"project", func() error { return project.Add(mgr, *c.Project.ConcurrentSyncs, c.Project.Quotas) }},
		{"shootConditions", func() error { return conditions.Add(mgr, *c.ShootConditions.ConcurrentSyncs) }},
		{"references", func() error { //nolint:contextcheck // filters of events have none, and read from memory
			// One controller does for all kinds what each has a setting for.
			return reference.Add(mgr, reference.Values{
				ConcurrentSyncs: max(*c.ShootReference.ConcurrentSyncs, *c.SeedReference.ConcurrentSyncs, *c.ControllerDeploymentReference.ConcurrentSyncs),
				Referrers:       []reference.Referrer{reference.Shoots(), reference.Seeds(), reference.ControllerDeployments()},
			})
		}},
		{"secrets of seeds", func() error { return secrets.Add(mgr) }},
		{"seedBackupBucketsCheck", func() error { return care.AddBackupBuckets(mgr, c.SeedBackupBucketsCheck, clk) }},
		{"seedExtensionsCheck", func() error { return care.AddExtensions(mgr, c.SeedExtensionsCheck, clk) }},
		{"seed", func() error { return lifecycle.Add(mgr, c.Seed, clk) }},
		{"shootHibernation", func() error { return hibernation.Add(mgr, &c.ShootHibernation, clk) }},
		{"shootMaintenance", func() error { return maintenance.Add(mgr, &c.ShootMaintenance, clk) }},
		{"shootQuota", func() error { return shootquota.Add(mgr, c.ShootQuota, clk) }},
		{"shootRetry", func() error { return retry.Add(mgr, c.ShootRetry, clk) }},
		{"shootStatusLabel", func() error { return statuslabel.Add(mgr, *c.ShootStatusLabel.ConcurrentSyncs) }},
		{"shootState", func() error { return finalizer.Add(mgr, *c.ShootState.ConcurrentSyncs) }},
	} {
		if err := controller.add(); err != nil {
			return fmt.Errorf("add controller %s: %w", controller.name, err)
		}
	}
	return nil
}
