/**
 * Reads what the client of a WebSocket sends for objects of other accounts, such as a stored prompt. A
 * message passes as it arrives; a session that names a foreign object ends.
 */
import { RequestScan } from '../objects/request-scan.js'
import { FrameReader } from './frame-reader.js'

/** One client's direction of a WebSocket. */
export class ClientFrames {
  private readonly reader: FrameReader
  private scan: RequestScan | null = null

  /** `check` is called with the ids of each message that names objects. */
  constructor(check: (ids: readonly string[]) => void) {
    this.reader = new FrameReader({
      part: (bytes) => {
        this.scan ??= new RequestScan(false)
        this.scan.write(bytes)
      },
      end: () => {
        const ids = [...(this.scan?.ids ?? [])]
        this.scan = null
        if (ids.length > 0) check(ids)
      },
    })
  }

  /** Bytes of the client, in order. */
  read(chunk: Buffer): void {
    this.reader.write(chunk)
  }
}
