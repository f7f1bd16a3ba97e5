package v1beta1

import "slices"

// InPlace reports whether nodes are updated without being replaced. Unset means that they are replaced.
func (s *MachineUpdateStrategy) InPlace() bool {
	return s != nil && (*s == AutoInPlaceUpdate || *s == ManualInPlaceUpdate)
}

// UpdatesPending reports whether nodes of a pool wait for an update in place, or are being updated.
func (s *ShootStatus) UpdatesPending(pool string) bool {
	p := s.pendingUpdates()
	return slices.Contains(p.AutoInPlaceUpdate, pool) || slices.Contains(p.ManualInPlaceUpdate, pool)
}

// AnyUpdatePending reports whether that is so for any pool.
func (s *ShootStatus) AnyUpdatePending() bool {
	p := s.pendingUpdates()
	return len(p.AutoInPlaceUpdate)+len(p.ManualInPlaceUpdate) > 0
}

// ManualUpdatesPending are the pools whose nodes the user selects for their update, and that are not updated yet.
func (s *ShootStatus) ManualUpdatesPending() []string { return s.pendingUpdates().ManualInPlaceUpdate }

func (s *ShootStatus) pendingUpdates() PendingWorkerUpdates {
	if s.InPlaceUpdates == nil || s.InPlaceUpdates.PendingWorkerUpdates == nil {
		return PendingWorkerUpdates{}
	}
	return *s.InPlaceUpdates.PendingWorkerUpdates
}
