package v1beta1

// SSHAccessEnabled reports whether people may log in to the nodes of a shoot. They may unless its settings say otherwise; without
// worker pools there is nothing to log in to.
func (p *Provider) SSHAccessEnabled() bool {
	if len(p.Workers) == 0 {
		return false
	}
	settings := p.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}
