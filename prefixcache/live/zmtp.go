package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// The part of ZMTP 3.0 (rfc.zeromq.org/spec/23) that a subscriber needs: a
// client without authentication over TCP or a Unix socket. It is written here
// since the Go libraries take as much memory as a frame's header asks for.

// Limits on what a publisher sends.
const (
	maxFrame = 64 << 20 // bytes
	maxParts = 16       // frames of a message
)

// Bits of a frame's first byte.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// handshakeTime bounds connecting and greeting.
const handshakeTime = 10 * time.Second

// zconn is a connection to one peer.
type zconn struct {
	c    net.Conn
	stop func() bool
}

// dialZMTP connects to an endpoint such as tcp://127.0.0.1:5557 as a socket of
// the type, SUB or DEALER. Canceling ctx ends the connection.
func dialZMTP(ctx context.Context, endpoint, socket string) (*zconn, error) {
	network, address, err := splitEndpoint(endpoint)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: handshakeTime}
	c, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("live: connecting to %s: %w", endpoint, err)
	}
	z := &zconn{c: c, stop: context.AfterFunc(ctx, func() { c.Close() })}
	c.SetDeadline(time.Now().Add(handshakeTime))
	if err := z.greet(socket); err != nil {
		z.close()
		return nil, fmt.Errorf("live: %s does not speak ZMTP 3 without authentication: %w", endpoint, err)
	}
	c.SetDeadline(time.Time{})
	return z, nil
}

// splitEndpoint reads an endpoint. Wildcards, with which publishers say where
// they listen, name no host to connect to.
func splitEndpoint(endpoint string) (network, address string, err error) {
	switch scheme, rest, ok := strings.Cut(endpoint, "://"); {
	case !ok:
		return "", "", fmt.Errorf("live: %q is no endpoint; it is like tcp://127.0.0.1:5557", endpoint)
	case scheme == "ipc":
		return "unix", rest, nil
	case scheme != "tcp":
		return "", "", fmt.Errorf("live: %q: only tcp:// and ipc:// can be connected to", endpoint)
	case strings.HasPrefix(rest, "*"):
		return "", "", fmt.Errorf("live: %q is where the engine listens; put the engine's host in place of *", endpoint)
	default:
		if _, _, err := net.SplitHostPort(rest); err != nil {
			return "", "", fmt.Errorf("live: %q: %w", endpoint, err)
		}
		return "tcp", rest, nil
	}
}

func (z *zconn) close() {
	z.stop()
	z.c.Close()
}

// greet exchanges greetings and READY commands.
func (z *zconn) greet(socket string) error {
	var greeting [64]byte
	greeting[0], greeting[9] = 0xFF, 0x7F
	greeting[10] = 3 // version 3.0: subscriptions are messages
	copy(greeting[12:], "NULL")
	if _, err := z.c.Write(greeting[:]); err != nil {
		return err
	}
	var theirs [64]byte
	if _, err := io.ReadFull(z.c, theirs[:]); err != nil {
		return err
	}
	switch mechanism := strings.TrimRight(string(theirs[12:32]), "\x00"); {
	case theirs[0] != 0xFF || theirs[9]&1 != 1 || theirs[10] < 3:
		return errors.New("the greeting is not one of version 3")
	case mechanism != "NULL":
		return fmt.Errorf("it asks for authentication by %q", mechanism)
	}
	ready := append([]byte{5}, "READY"...)
	ready = append(ready, 11)
	ready = append(ready, "Socket-Type"...)
	ready = binary.BigEndian.AppendUint32(ready, uint32(len(socket)))
	ready = append(ready, socket...)
	ready = append(ready, 8)
	ready = append(ready, "Identity"...)
	ready = binary.BigEndian.AppendUint32(ready, 0)
	if err := z.writeFrame(flagCommand, ready); err != nil {
		return err
	}
	flags, body, err := z.readFrame()
	switch {
	case err != nil:
		return err
	case flags&flagCommand == 0 || !strings.HasPrefix(string(body), "\x05READY"):
		return fmt.Errorf("it answered %.40q", body)
	}
	return nil
}

func (z *zconn) writeFrame(flags byte, body []byte) error {
	var head []byte
	if len(body) > 255 {
		head = binary.BigEndian.AppendUint64([]byte{flags | flagLong}, uint64(len(body)))
	} else {
		head = []byte{flags, byte(len(body))}
	}
	_, err := z.c.Write(append(head, body...))
	return err
}

// send writes a message.
func (z *zconn) send(parts ...[]byte) error {
	for i, p := range parts {
		flags := byte(flagMore)
		if i == len(parts)-1 {
			flags = 0
		}
		if err := z.writeFrame(flags, p); err != nil {
			return err
		}
	}
	return nil
}

// readFrame reads a frame. Memory grows with what arrives, not with what the
// header announces.
func (z *zconn) readFrame() (flags byte, body []byte, err error) {
	var head [9]byte
	if _, err := io.ReadFull(z.c, head[:2]); err != nil {
		return 0, nil, err
	}
	size := uint64(head[1])
	if head[0]&flagLong != 0 {
		if _, err := io.ReadFull(z.c, head[2:9]); err != nil {
			return 0, nil, err
		}
		size = binary.BigEndian.Uint64(head[1:9])
	}
	if size > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than the %d allowed", size, maxFrame)
	}
	body = make([]byte, 0, min(size, 64<<10))
	for uint64(len(body)) < size {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := io.ReadFull(z.c, body[len(body):min(uint64(cap(body)), size)])
		body = body[:len(body)+n]
		if err != nil {
			return 0, nil, err
		}
	}
	return head[0], body, nil
}

// receive reads the next message. Commands, such as the peer's heartbeat, are
// answered or passed over.
func (z *zconn) receive() ([][]byte, error) {
	var parts [][]byte
	total := 0
	for {
		flags, body, err := z.readFrame()
		if err != nil {
			return nil, err
		}
		if flags&flagCommand != 0 {
			// PING has a lifetime of two bytes and a context to be sent back.
			if name := "\x04PING"; strings.HasPrefix(string(body), name) && len(body) >= len(name)+2 {
				if err := z.writeFrame(flagCommand, append([]byte("\x04PONG"), body[len(name)+2:]...)); err != nil {
					return nil, err
				}
			}
			continue
		}
		total += len(body)
		if parts = append(parts, body); len(parts) > maxParts || total > maxFrame {
			return nil, fmt.Errorf("a message of more than %d parts or %d bytes", maxParts, maxFrame)
		}
		if flags&flagMore == 0 {
			return parts, nil
		}
	}
}
