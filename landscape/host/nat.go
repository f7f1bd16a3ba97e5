package host

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
)

func (n Network) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "gardener-" + n.Landscape}
}

// masquerade gives traffic of machines that leaves the host the host's address. It replaces the landscape's table in one transaction.
func (n Network) masquerade() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	// Adding before deleting makes the deletion succeed when there was no table.
	conn.AddTable(n.table())
	conn.DelTable(n.table())
	table := conn.AddTable(n.table())
	chain := conn.AddChain(&nftables.Chain{
		Table: table, Name: "postrouting", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	subnet := n.Subnet().String()
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: slices.Concat(
		matchAddress(sourceOffset, subnet, expr.CmpOpEq),
		matchAddress(destinationOffset, subnet, expr.CmpOpNeq),
		[]expr.Any{&expr.Masq{}},
	)})
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("write nftables table %q: %w", table.Name, err)
	}
	return nil
}

func (n Network) removeMasquerade() error {
	conn, err := nftables.New()
	if err != nil {
		return fmt.Errorf("open nftables: %w", err)
	}
	conn.AddTable(n.table())
	conn.DelTable(n.table())
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("remove nftables table %q: %w", n.table().Name, err)
	}
	return nil
}

const (
	sourceOffset      = 12 // of the source address in an IPv4 header, in bytes
	destinationOffset = 16
)

func matchAddress(offset uint32, network string, op expr.CmpOp) []expr.Any {
	prefix := netip.MustParsePrefix(network)
	mask := binaryutil.BigEndian.PutUint32(^uint32(0) << (32 - prefix.Bits()))
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: mask, Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: prefix.Addr().AsSlice()},
	}
}
