package v1beta1

// Conditions of ControllerInstallations.
const (
	// ControllerInstallationValid says whether the installation could be rendered. Written by the gardenlet.
	ControllerInstallationValid ConditionType = "Valid"
	// ControllerInstallationInstalled says whether the resources of the extension are applied. Written by the gardenlet.
	ControllerInstallationInstalled ConditionType = "Installed"
	// ControllerInstallationHealthy says whether the extension runs. Written by the gardenlet.
	ControllerInstallationHealthy ConditionType = "Healthy"
	// ControllerInstallationProgressing says whether the extension is being rolled out. Written by the gardenlet.
	ControllerInstallationProgressing ConditionType = "Progressing"
	// ControllerInstallationRequired says whether there are extension resources that need the extension. Written by the
	// gardenlet.
	ControllerInstallationRequired ConditionType = "Required"
)
