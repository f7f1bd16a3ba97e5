package local

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	extensionoptions "gardener.cloud/gardener/pkg/extension/options"
	"gardener.cloud/gardener/pkg/extension/webhook"
	"gardener.cloud/gardener/pkg/extension/webhook/gardenadmission"
)

// AdmissionName is the name of the command of the admission controller. Its Deployment and Service, and its webhook configurations in the garden, are named
// gardener-extension-admission-local.
const AdmissionName = "admission-local"

// NewAdmissionOptions returns the options of the admission controller. It has webhooks only, which every replica serves, so none leads.
func NewAdmissionOptions() *extensionoptions.Options {
	o := extensionoptions.New(AdmissionName)
	o.LeaderElection, o.Cluster = false, "garden"
	return o
}

// NewAdmissionCommand returns the command of the admission controller.
func NewAdmissionCommand() *cobra.Command {
	o := NewAdmissionOptions()
	cmd := &cobra.Command{
		Use: AdmissionName, Short: "Check in the garden what users configure for clusters on this computer", Args: cobra.NoArgs, SilenceUsage: true,
		Example: "  " + AdmissionName + " --kubeconfig=garden.yaml --webhook-config-mode=url-service --webhook-config-namespace=garden \\\n" +
			"    --webhook-config-owner-namespace=extension-provider-local",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			log := o.Logger(cmd.ErrOrStderr())
			logf.SetLogger(log)
			config, err := o.RESTConfig()
			if err != nil {
				return err
			}
			scheme, err := NewAdmissionScheme()
			if err != nil {
				return err
			}
			mgr, err := o.NewManager(config, scheme, log)
			if err != nil {
				return err
			}
			if err := AddAdmission(mgr, o); err != nil {
				return err
			}
			return mgr.Start(cmd.Context())
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}

// NewAdmissionScheme returns the kinds that the admission controller reads.
func NewAdmissionScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), securityv1alpha1.AddToScheme(scheme),
		localv1alpha1.AddToScheme(scheme))
}

// AddAdmission adds the webhooks to a manager, whose cluster is the garden. Their certificates are in the namespace that the registration is deleted with: the
// process has no permissions in the cluster that it runs in.
func AddAdmission(mgr manager.Manager, o *extensionoptions.Options) error {
	return o.AddWebhooks(mgr, webhook.Options{
		CertificateNamespace: o.WebhookOwnerNamespace, Webhooks: AdmissionWebhooks(mgr.GetAPIReader(), gardenadmission.NewDecoder(mgr.GetScheme())),
	})
}

// AdmissionWebhooks are the webhooks for the garden. They are called for objects of this provider that are created, and when what they check is changed.
func AdmissionWebhooks(garden client.Reader, decoder runtime.Decoder) []webhook.Webhook {
	const name, changed = "spec-changed", gardenadmission.SpecChanged
	profiles, credentials := &profileAdmission{garden, decoder}, &credentialsAdmission{garden}
	return []webhook.Webhook{
		gardenadmission.Validator("shoots", gardenadmission.Shoots(Type).When(name, changed), checkShoot),
		gardenadmission.Validator("networks", gardenadmission.ShootsWithNetworking(networkType).When(name, changed), checkNetworks),
		gardenadmission.Validator("containerruntimes", gardenadmission.ShootsWithContainerRuntime(runtimeType).When(name, changed), checkContainerRuntimes),
		gardenadmission.Validator("cloudprofiles", gardenadmission.CloudProfiles(Type).When(name, changed), profiles.check),
		gardenadmission.Validator("namespacedcloudprofiles", gardenadmission.NamespacedCloudProfiles(Type).When(name, changed), profiles.checkNamespaced),
		gardenadmission.Mutator("namespacedcloudprofile-statuses", gardenadmission.NamespacedCloudProfileStatuses(Type), mergeStatus),
		gardenadmission.Validator("seeds", gardenadmission.Seeds(Type).When(name, changed), checkSeed),
		gardenadmission.Validator("backupbuckets", gardenadmission.BackupBuckets(Type).When(name, changed), checkBackupBucket),
		gardenadmission.Validator("secrets", gardenadmission.Credentials(Type).When("data-changed", gardenadmission.DataChanged), checkSecret),
		gardenadmission.Validator("credentialsbindings", gardenadmission.CredentialsBindings(Type).When("created", gardenadmission.Created), credentials.checkBinding),
		gardenadmission.Validator("secretbindings", gardenadmission.SecretBindings(Type).When("provider-set", gardenadmission.ProviderSet), credentials.checkSecretBinding),
	}
}
