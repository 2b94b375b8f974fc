/**
 * What one client is sent: gathered while a turn of the event loop lasts, handed to the system at its end.
 * Knows no HTTP.
 *
 * All answers of a turn leave one right after the other. Whoever reads them is woken for the first and
 * still awake for the rest, and to wake a process is the dearest part of a write (docs/decisions/0039).
 */
import type { Socket } from 'node:net'

/** Whose outbox it is. */
export interface OutboxOwner {
  /** The client has caught up, after a write that said it was behind. */
  drained(): void
  /** All that was written before `finish` has gone to the system. */
  left(): void
}

/** Those that have something to send in this turn. */
let due: Outbox[] = []

function flushAll(): void {
  const boxes = due
  due = []
  for (const box of boxes) box.flush()
}

/** The sending side of a connection. */
export class Outbox {
  /** True from `finish` until that has been looked to: at the end of the turn. */
  isFinished = false
  private readonly socket: Socket
  private readonly owner: OutboxOwner
  private text = ''
  private encoding: 'latin1' | 'utf8' = 'latin1'
  private isDue = false
  /** The writer was told that the client is behind. */
  private isBehind = false

  constructor(socket: Socket, owner: OutboxOwner) {
    this.socket = socket
    this.owner = owner
  }

  /** What waits for the end of the turn, or for the client to take it; a text counts by its characters. */
  get length(): number {
    return this.socket.writableLength + this.text.length
  }

  /** False where the client is behind; the owner is told once it is not. */
  write(data: string | Buffer, encoding: 'latin1' | 'utf8'): boolean {
    const { socket } = this
    if (typeof data !== 'string') {
      this.push()
      socket.write(data)
    } else {
      if (encoding !== this.encoding) this.push()
      this.encoding = encoding
      this.text += data
      this.schedule()
    }
    if (this.length >= socket.writableHighWaterMark) this.isBehind = true
    return !this.isBehind
  }

  /** Asks to be told when all that was written has left. */
  finish(): void {
    this.isFinished = true
    this.schedule()
  }

  /** Hands over what was written, and tells of it, without waiting for the end of the turn. */
  flush(): void {
    if (!this.isDue) return
    this.isDue = false
    const { socket } = this
    if (socket.destroyed) return
    this.push()
    if (!socket.writableNeedDrain) this.caughtUp()
    if (!this.isFinished) return
    this.isFinished = false
    if (socket.writableLength === 0) this.owner.left()
    // Called once this, and all before it, has gone to the system.
    else socket.write('', (error) => (error ? undefined : this.owner.left()))
  }

  /** Hands over what was written. */
  push(): void {
    const { text } = this
    if (text === '') return
    this.text = ''
    this.socket.write(text, this.encoding)
  }

  /** For the owner: the socket has nothing left to send. */
  caughtUp(): void {
    if (!this.isBehind) return
    this.isBehind = false
    this.owner.drained()
  }

  private schedule(): void {
    if (this.isDue) return
    this.isDue = true
    if (due.push(this) === 1) setImmediate(flushAll)
  }
}
