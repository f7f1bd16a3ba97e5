// Package admission lists the admission plugins of gardener-apiserver in the order of their execution, with those that are off by
// default. docs/admission.md says what each is for.
//
// A plugin is a package below this one with its Name and a function Register. It runs in this process, and gets what it reads
// through the package initializer.
package admission

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"gardener.cloud/gardener/internal/apiserver/admission/backupbucketvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/bastion"
	"gardener.cloud/gardener/internal/apiserver/admission/clusteropenidconnectpreset"
	"gardener.cloud/gardener/internal/apiserver/admission/controllerregistrationresources"
	"gardener.cloud/gardener/internal/apiserver/admission/customverbauthorizer"
	"gardener.cloud/gardener/internal/apiserver/admission/deletionconfirmation"
	"gardener.cloud/gardener/internal/apiserver/admission/extensionlabels"
	"gardener.cloud/gardener/internal/apiserver/admission/extensionvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/finalizerremoval"
	"gardener.cloud/gardener/internal/apiserver/admission/managedseed"
	"gardener.cloud/gardener/internal/apiserver/admission/managedseedshoot"
	"gardener.cloud/gardener/internal/apiserver/admission/namespacedcloudprofilevalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/openidconnectpreset"
	"gardener.cloud/gardener/internal/apiserver/admission/plantvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/projectmutator"
	"gardener.cloud/gardener/internal/apiserver/admission/quantityvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/resourcereferencemanager"
	"gardener.cloud/gardener/internal/apiserver/admission/seedmutator"
	"gardener.cloud/gardener/internal/apiserver/admission/seedrestriction"
	"gardener.cloud/gardener/internal/apiserver/admission/seedvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/shootdns"
	"gardener.cloud/gardener/internal/apiserver/admission/shootdnsrewriting"
	"gardener.cloud/gardener/internal/apiserver/admission/shootexposureclass"
	"gardener.cloud/gardener/internal/apiserver/admission/shootmanagedseed"
	"gardener.cloud/gardener/internal/apiserver/admission/shootmutator"
	"gardener.cloud/gardener/internal/apiserver/admission/shootnodelocaldnsenabledbydefault"
	"gardener.cloud/gardener/internal/apiserver/admission/shootquotavalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/shootresourcereservation"
	"gardener.cloud/gardener/internal/apiserver/admission/shootrestriction"
	"gardener.cloud/gardener/internal/apiserver/admission/shoottolerationrestriction"
	"gardener.cloud/gardener/internal/apiserver/admission/shootvalidator"
	"gardener.cloud/gardener/internal/apiserver/admission/shootvpaenabledbydefault"
)

// plugin is an admission plugin.
type plugin struct {
	name     string
	register func(*admission.Plugins)
	// off is whether it runs only when it is enabled.
	off bool
}

// plugins are all plugins in the order of their execution. Mutating plugins run before validating ones.
func plugins() []plugin {
	// These are registered together with those that every API server has.
	kubernetes := func(name string) plugin { return plugin{name: name, register: func(*admission.Plugins) {}} }
	mutatingPolicy := kubernetes(mutatingpolicy.PluginName)
	mutatingPolicy.off = true
	return []plugin{
		// The original does not have it. Others compare quantities.
		{name: quantityvalidator.Name, register: quantityvalidator.Register},
		kubernetes(lifecycle.PluginName),
		// The original has the next two as webhooks only; here they read what has just been written. They come first, as the others say what exists.
		{name: seedrestriction.Name, register: seedrestriction.Register},
		{name: shootrestriction.Name, register: shootrestriction.Register},
		{name: resourcereferencemanager.Name, register: resourcereferencemanager.Register},
		{name: extensionvalidator.Name, register: extensionvalidator.Register},
		{name: extensionlabels.Name, register: extensionlabels.Register},
		{name: shoottolerationrestriction.Name, register: shoottolerationrestriction.Register},
		{name: shootexposureclass.Name, register: shootexposureclass.Register},
		{name: shootdns.Name, register: shootdns.Register},
		{name: shootmanagedseed.Name, register: shootmanagedseed.Register},
		{name: shootnodelocaldnsenabledbydefault.Name, register: shootnodelocaldnsenabledbydefault.Register, off: true},
		{name: shootdnsrewriting.Name, register: shootdnsrewriting.Register, off: true},
		{name: shootquotavalidator.Name, register: shootquotavalidator.Register},
		{name: shootmutator.Name, register: shootmutator.Register},
		{name: shootvalidator.Name, register: shootvalidator.Register},
		{name: seedvalidator.Name, register: seedvalidator.Register},
		{name: seedmutator.Name, register: seedmutator.Register},
		{name: controllerregistrationresources.Name, register: controllerregistrationresources.Register},
		{name: namespacedcloudprofilevalidator.Name, register: namespacedcloudprofilevalidator.Register},
		{name: projectmutator.Name, register: projectmutator.Register},
		{name: deletionconfirmation.Name, register: deletionconfirmation.Register},
		{name: finalizerremoval.Name, register: finalizerremoval.Register},
		// The documents have the next three; the original removed them later.
		{name: plantvalidator.Name, register: plantvalidator.Register},
		{name: openidconnectpreset.Name, register: openidconnectpreset.Register},
		{name: clusteropenidconnectpreset.Name, register: clusteropenidconnectpreset.Register},
		{name: customverbauthorizer.Name, register: customverbauthorizer.Register},
		{name: shootvpaenabledbydefault.Name, register: shootvpaenabledbydefault.Register},
		{name: shootresourcereservation.Name, register: shootresourcereservation.Register},
		{name: managedseed.Name, register: managedseed.Register},
		{name: managedseedshoot.Name, register: managedseedshoot.Register},
		{name: bastion.Name, register: bastion.Register},
		{name: backupbucketvalidator.Name, register: backupbucketvalidator.Register},
		mutatingPolicy,
		kubernetes(mutatingwebhook.PluginName),
		kubernetes(validatingpolicy.PluginName),
		kubernetes(validatingwebhook.PluginName),
		{name: resourcequota.PluginName, register: resourcequota.Register},
	}
}

// NewOptions returns the options with our plugins, for the flags that kube-apiserver has as well.
func NewOptions() *genericoptions.AdmissionOptions {
	options := genericoptions.NewAdmissionOptions()
	options.Plugins = admission.NewPlugins()
	options.RecommendedPluginOrder, options.DefaultOffPlugins = nil, sets.New[string]()
	genericapiserver.RegisterAllAdmissionPlugins(options.Plugins)
	for _, p := range plugins() {
		p.register(options.Plugins)
		options.RecommendedPluginOrder = append(options.RecommendedPluginOrder, p.name)
		if p.off {
			options.DefaultOffPlugins.Insert(p.name)
		}
	}
	return options
}
