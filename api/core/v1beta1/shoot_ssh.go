package v1beta1

// SSHAccessEnabled reports whether users may log in to the nodes of a shoot. They may unless workersSettings.sshAccess says otherwise.
// Without worker pools there are no nodes.
func (p *Provider) SSHAccessEnabled() bool {
	if len(p.Workers) == 0 {
		return false
	}
	settings := p.WorkersSettings
	return settings == nil || settings.SSHAccess == nil || settings.SSHAccess.Enabled
}
