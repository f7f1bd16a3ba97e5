// Package attack holds one test per way in which a tenant could reach further than the tenant.
package attack
