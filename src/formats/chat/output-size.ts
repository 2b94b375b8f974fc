/**
 * The size of a reply in bytes and calls, from which tokens are estimated if the upstream reports no usage.
 */
import type { ChatEvent } from './event.js'
import type { ReplyBlock } from './fold.js'

/** The size of a reply so far. */
export interface OutputSize {
  /** UTF-8 bytes of text, reasoning, and names and arguments of calls. */
  readonly bytes: number
  readonly calls: number
}

export const NO_OUTPUT: OutputSize = { bytes: 0, calls: 0 }

/** Measures the events of a stream. */
export class OutputMeter implements OutputSize {
  bytes = 0
  calls = 0
  private readonly onTool: ((name: string) => void) | undefined

  /** `onTool` gets the name of each tool that is called. */
  constructor(onTool?: (name: string) => void) {
    this.onTool = onTool
  }

  add(event: ChatEvent): void {
    switch (event.type) {
      case 'text-delta':
      case 'refusal-delta':
      case 'thinking-delta':
        this.bytes += Buffer.byteLength(event.text)
        return
      case 'tool-delta':
        this.bytes += Buffer.byteLength(event.json)
        return
      case 'tool-start':
        this.calls += 1
        this.bytes += event.name.length
        this.onTool?.(event.name)
        return
      default:
    }
  }
}

/** The size of a whole reply. */
export function outputSizeOf(blocks: readonly ReplyBlock[]): OutputSize {
  let bytes = 0
  let calls = 0
  for (const block of blocks) {
    switch (block.type) {
      case 'text':
      case 'refusal':
      case 'thinking':
        bytes += Buffer.byteLength(block.text)
        break
      case 'tool':
        calls += 1
        bytes += block.name.length + Buffer.byteLength(block.json)
        break
      default:
    }
  }
  return { bytes, calls }
}
