// Reads the size of an image from its first bytes. A small file can be a huge picture, so nothing is decoded before.

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** `undefined` if the bytes are not a PNG, GIF, WebP or JPEG image. */
export function sizeOfImage(bytes: Uint8Array): Size | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const tag = (at: number, length: number) => String.fromCharCode(...bytes.subarray(at, at + length));
  if (bytes.length < 30) return undefined;
  if (tag(1, 3) === "PNG") return { width: view.getUint32(16), height: view.getUint32(20) };
  if (tag(0, 3) === "GIF") return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
  if (tag(0, 4) === "RIFF" && tag(8, 4) === "WEBP") return sizeOfWebP(view, tag(12, 4));
  return view.getUint16(0) === 0xffd8 ? sizeOfJpeg(view) : undefined;
}

/** The sizes of images are at their beginning. This many letters of Base64 are 48 KiB. */
const beginning = 65_536;

/** The size of an image in Base64. `undefined` if it is not at its beginning. */
export function sizeOfData(data: string): Size | undefined {
  try {
    return sizeOfImage(Uint8Array.from(atob(data.slice(0, beginning)), (letter) => letter.charCodeAt(0)));
  } catch {
    // The text is not Base64.
    return undefined;
  }
}

function sizeOfWebP(view: DataView, format: string): Size | undefined {
  const three = (at: number) => view.getUint16(at, true) + (view.getUint8(at + 2) << 16);
  switch (format) {
    case "VP8X":
      return { width: 1 + three(24), height: 1 + three(27) };
    case "VP8L":
      return { width: 1 + (view.getUint32(21, true) & 0x3fff), height: 1 + ((view.getUint32(21, true) >> 14) & 0x3fff) };
    case "VP8 ":
      return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff };
    default:
      return undefined;
  }
}

/** A JPEG file is a list of segments. One of them, the start of a frame, has the size. */
function sizeOfJpeg(view: DataView): Size | undefined {
  for (let at = 2; at + 9 <= view.byteLength; at += 2 + view.getUint16(at + 2)) {
    const marker = view.getUint16(at);
    if (marker < 0xff00) return undefined;
    const isFrame = 0xffc0 <= marker && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
  }
  return undefined;
}
