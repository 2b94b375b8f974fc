/** Splits recorded streams into frames, for tests of codecs. The framer of the gateway has its own tests. */

/** A frame of a stream, as the framer passes it to a decoder. */
export interface Frame {
  /** The value of the `event` field; empty without one. */
  readonly name: string
  readonly data: string
}

/** The frames of a stream of named server-sent events. */
export function framesOf(sse: string): Frame[] {
  const frames: Frame[] = []
  for (const block of sse.replaceAll('\r\n', '\n').split('\n\n')) {
    let name = ''
    const data: string[] = []
    for (const line of block.split('\n')) {
      if (line.startsWith('event:')) name = line.slice(6).trim()
      if (line.startsWith('data:')) data.push(line.slice(5).replace(/^ /, ''))
    }
    if (data.length > 0) frames.push({ name, data: data.join('\n') })
  }
  return frames
}
