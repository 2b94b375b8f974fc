/**
 * What clients send, read into one buffer of the process. Knows no HTTP.
 *
 * Node takes 64 KB of memory for each read of a socket and cuts it to size, unless the socket was made with
 * `onread`, for which a listener's sockets have no option. So the inner handle of an accepted socket is put into a
 * second one that has it (docs/decisions/0019). Where Node has no such handle any more, reads are as it has them.
 */
import { Socket, type SocketConstructorOpts, type TcpSocketConnectOpts } from 'node:net'

/** As much as one read can bring; its taking is one step, so that no two reads need it at once. */
const READ_BUFFER = Buffer.allocUnsafeSlow(65_536)

/** A socket whose inner side can be given a buffer. */
interface Holder {
  _handle: { useUserBuffer(buffer: Uint8Array): void } | null
}

/**
 * The accepted socket, or another in its place, whose bytes `take` gets: only lent, they are overwritten once it
 * returns. To stop reading, it pauses the socket. The listener no longer counts a connection that was put into
 * another socket.
 */
export function lendReads(accepted: Socket, take: (bytes: Buffer) => void): Socket {
  if (!hasHandle(accepted)) return accepted.on('data', take)
  const { _handle: handle, allowHalfOpen, writableHighWaterMark } = accepted
  accepted._handle = null
  accepted.destroy()
  const options: Options = {
    handle,
    allowHalfOpen,
    writableHighWaterMark,
    onread: {
      buffer: READ_BUFFER,
      callback(length) {
        take(READ_BUFFER.subarray(0, length))
        return !socket.isPaused()
      },
    },
  }
  const socket = new Socket(options)
  return socket
}

/** Node's own options, and what it takes besides them. */
interface Options extends SocketConstructorOpts, Pick<TcpSocketConnectOpts, 'onread'> {
  readonly handle: Holder['_handle']
  readonly writableHighWaterMark: number
}

function hasHandle(socket: Socket): socket is Socket & Holder {
  if (!('_handle' in socket)) return false
  const { _handle: handle } = socket
  return typeof handle === 'object' && handle !== null && 'useUserBuffer' in handle
}

/** A copy of what is lent between the two. */
export function copied(bytes: Buffer, from: number, to: number): Buffer {
  const copy = Buffer.allocUnsafe(to - from)
  bytes.copy(copy, 0, from, to)
  return copy
}
