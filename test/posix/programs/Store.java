// SPDX-License-Identifier: BSD-3-Clause
// Java's ways to a file in the directory $P: streams, channels, random access, Files, zip, serialisation.
import java.io.*;
import java.nio.*;
import java.nio.channels.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.zip.*;

public class Store {
	static Path p = Path.of(System.getenv("P"));

	public static void main(String[] args) throws Exception {
		try (PrintWriter w = new PrintWriter(p.resolve("text").toFile())) {
			for (int i = 0; i < 1000; i++)
				w.println("line " + i);
		}
		try (FileOutputStream o = new FileOutputStream(p.resolve("text").toFile(), true)) {
			o.write("appended\n".getBytes());
			o.getFD().sync();
		}
		List<String> lines = Files.readAllLines(p.resolve("text"));
		System.out.println(lines.size() + " " + lines.get(1000));
		try (RandomAccessFile f = new RandomAccessFile(p.resolve("ra").toFile(), "rw")) {
			f.setLength(10000);
			f.seek(5000);
			f.writeInt(0x01020304);
			f.writeUTF("utf");
			f.seek(5000);
			System.out.println(f.readInt() + f.readUTF() + f.getFilePointer() + " " + f.length());
			f.setLength(6000);
		}
		try (FileChannel c = FileChannel.open(p.resolve("ch"), StandardOpenOption.CREATE, StandardOpenOption.READ,
				StandardOpenOption.WRITE)) {
			ByteBuffer[] b = {ByteBuffer.wrap("gather ".getBytes()), ByteBuffer.wrap("write".getBytes())};
			System.out.println(c.write(b) + " " + c.position());
			c.write(ByteBuffer.wrap("AT".getBytes()), 3);
			ByteBuffer in = ByteBuffer.allocateDirect(20);
			System.out.println(c.read(in, 0) + " " + StandardCharsets.US_ASCII.decode(in.flip()));
			try (FileLock l = c.lock(0, 10, false)) {
				System.out.println(l.isValid() + " " + l.isShared());
			}
			c.truncate(9);
			c.force(true);
			System.out.println(c.size());
			try (FileChannel d = FileChannel.open(p.resolve("tr"), StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
				System.out.println(c.transferTo(0, 9, d) + " " + d.transferFrom(c, 4, 5));
			}
		}
		System.out.println(Files.readString(p.resolve("tr")));
		Path d = Files.createDirectories(p.resolve("d/e"));
		Files.writeString(d.resolve("f"), "content");
		Files.copy(d.resolve("f"), d.resolve("g"));
		Files.move(d.resolve("g"), p.resolve("text2"), StandardCopyOption.ATOMIC_MOVE);
		Files.createSymbolicLink(d.resolve("l"), Path.of("f"));
		Files.createLink(d.resolve("h"), d.resolve("f"));
		try (var s = Files.walk(p)) {
			s.map(x -> p.relativize(x).toString()).sorted().forEach(System.out::println);
		}
		System.out.println(d.resolve("l").toRealPath().equals(d.resolve("f")) + " " + Files.size(d.resolve("l")) + " "
				+ Files.getAttribute(d.resolve("h"), "unix:nlink") + " "
				+ Files.isSameFile(d.resolve("f"), d.resolve("h")));
		for (Path bad : new Path[] {p.resolve("none"), d}) {
			try {
				Files.readAllBytes(bad);
			} catch (IOException e) {
				System.out.println(e.toString().replace(p.toString(), "P"));
			}
		}
		try {
			Files.createFile(d.resolve("f"));
		} catch (FileAlreadyExistsException e) {
			System.out.println("exists");
		}
		try (ObjectOutputStream o = new ObjectOutputStream(Files.newOutputStream(p.resolve("ser")))) {
			o.writeObject(new ArrayList<>(List.of(1, 2, 3)));
		}
		try (ObjectInputStream i = new ObjectInputStream(Files.newInputStream(p.resolve("ser")))) {
			System.out.println(i.readObject());
		}
		try (GZIPOutputStream z = new GZIPOutputStream(new FileOutputStream(p.resolve("gz").toFile()))) {
			z.write(new byte[100000]);
		}
		try (GZIPInputStream z = new GZIPInputStream(new FileInputStream(p.resolve("gz").toFile()))) {
			System.out.println(z.readAllBytes().length);
		}
		Path t = Files.createTempFile(p, "tmp", null);
		Files.delete(t);
		Process c = new ProcessBuilder("sort").redirectInput(p.resolve("text2").toFile())
				.redirectOutput(p.resolve("sorted").toFile()).start();
		System.out.println(c.waitFor() + Files.readString(p.resolve("sorted")));
		if (args.length > 0 && args[0].equals("maps"))
			maps();
	}

	static void maps() throws Exception {
		try (FileChannel c = FileChannel.open(p.resolve("ra"), StandardOpenOption.READ, StandardOpenOption.WRITE)) {
			MappedByteBuffer m = c.map(FileChannel.MapMode.READ_WRITE, 0, 8000);
			m.putInt(100, 77);
			m.force();
			ByteBuffer in = ByteBuffer.allocate(4);
			c.read(in, 100);
			System.out.println(in.flip().getInt() + " " + c.size() + " " + c.map(FileChannel.MapMode.READ_ONLY, 0, 200).getInt(100));
		}
	}
}
