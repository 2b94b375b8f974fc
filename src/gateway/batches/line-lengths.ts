/** Checks the lengths of the lines of a file while it arrives. */
import { malformed, type GatewayError } from '../../errors.js'

/** The lengths of the lines of one file. */
export class LineLengths {
  private readonly maxBytes: number
  private line = 1
  private bytes = 0

  /** `maxBytes`: `files.max_line_bytes`. */
  constructor(maxBytes: number) {
    this.maxBytes = maxBytes
  }

  /** The error of the first line that is too long; null if none of these bytes makes one so. */
  read(chunk: Buffer): GatewayError | null {
    for (let begin = 0; begin < chunk.length;) {
      const end = chunk.indexOf(0x0a, begin)
      this.bytes += (end === -1 ? chunk.length : end) - begin
      if (this.bytes > this.maxBytes) {
        return malformed(`Line ${this.line}: must not be longer than ${this.maxBytes} bytes`, 'file')
      }
      if (end === -1) return null
      this.line += 1
      this.bytes = 0
      begin = end + 1
    }
    return null
  }
}
