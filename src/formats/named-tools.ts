/** The codec of an upstream that takes only some names of tools. */
import type { UpstreamCodec } from './dialect.js'
import { withClientNames, withWireNames, type NameRule } from './wire/tool-names.js'

/**
 * The codec with the vendor's names of tools in requests and the client's in replies, so that the codec
 * itself has one name for each tool.
 */
export function withToolNames(codec: UpstreamCodec, rule: NameRule): UpstreamCodec {
  const newChoices = codec.newChoices?.bind(codec)
  return {
    ...codec,
    encodeRequest: (request, model, losses) =>
      codec.encodeRequest(withWireNames(request, rule).request, model, losses),
    decodeReply: (body, given, sink) => {
      const { request, client } = withWireNames(given, rule)
      codec.decodeReply(body, request, withClientNames(sink, client))
    },
    newDecoder: (given, sink, mayPause) => {
      const { request, client } = withWireNames(given, rule)
      return codec.newDecoder(request, withClientNames(sink, client), mayPause)
    },
    ...(newChoices !== undefined && {
      newChoices: (given, sinks) => {
        const { request, client } = withWireNames(given, rule)
        const named = sinks.map((sink) => withClientNames(sink, client))
        return newChoices(request, named)
      },
    }),
  }
}
